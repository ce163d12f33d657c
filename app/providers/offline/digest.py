"""What a text says about itself, extracted and never invented: title, headings, opening sentences, key lines, sizes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_LINE_CHARS = 160
_MOST_HEADINGS, _MOST_KEY_LINES, _OPENING_CHARS = 8, 5, 300
_CODE = (
    "def ",
    "class ",
    "async def ",
    "function ",
    "export ",
    "fn ",
    "func ",
    "public ",
    "interface ",
    "struct ",
    "type ",
)
_KEY = ("TODO", "FIXME", "NOTE", "IMPORTANT", "WARNING", "Decision", "Conclusion", "Quan trọng", "Lưu ý", "Kết luận")
_SENTENCE_ENDS = (". ", "! ", "? ", "… ")


@dataclass(frozen=True, slots=True)
class Digest:
    lines: int
    words: int
    headings: tuple[str, ...]
    opening: str
    key_lines: tuple[str, ...]


def digest(lines: Sequence[str]) -> Digest:
    words = sum(len(line.split()) for line in lines)
    headings = tuple(_first(_headings(lines), _MOST_HEADINGS))
    key_lines = tuple(_first((shortened(line.strip()) for line in lines if _is_key(line)), _MOST_KEY_LINES))
    return Digest(len(lines), words, headings, opening(lines), key_lines)


def _first(items: Iterator[str], most: int) -> Iterator[str]:
    seen: dict[str, None] = {}
    for item in items:
        if len(seen) == most:
            break
        seen.setdefault(item)
    return iter(seen)


def _headings(lines: Sequence[str]) -> Iterator[str]:
    """Markdown headings, or the names that code defines."""
    for line in lines:
        bare = line.lstrip("#")
        if len(bare) < len(line) <= 200 and bare.startswith(" ") and bare.strip():
            yield shortened(bare.strip())
        elif line.lstrip().startswith(_CODE):
            yield shortened(line.strip().rstrip(":{ "))


def opening(lines: Sequence[str]) -> str:
    """The first two sentences of plain text, in at most 300 characters."""
    plain = (line.strip() for line in lines if line.strip() and not _is_structure(line.strip()))
    text = ""
    for line in plain:
        text = f"{text} {line}".strip()
        if len(text) >= _OPENING_CHARS or _sentences_end(text) is not None:
            break
    end = _sentences_end(text)
    return shortened(text if end is None else text[:end], _OPENING_CHARS)


def _sentences_end(text: str) -> int | None:
    """Where the second sentence ends."""
    seen = 0
    for at in range(1, len(text)):
        if text[at - 1 : at + 1] in _SENTENCE_ENDS:
            seen += 1
            if seen == 2:
                return at
    return None


def _is_structure(line: str) -> bool:
    return line.startswith(("#", "-", "*", "|", "```", "---", "===", "<", "//", "import ", "from ", *_CODE))


def _is_key(line: str) -> bool:
    return any(mark in line for mark in _KEY)


def shortened(text: str, most: int = MAX_LINE_CHARS) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
