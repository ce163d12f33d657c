"""What a conversation holds for its summary, taken from its lines verbatim."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.providers.offline.digest import shortened
from app.providers.offline.speakers import Utterance

_LIMITS = (
    "must",
    "never",
    "always",
    "only",
    "don't",
    "do not",
    "prefer",
    "avoid",
    "required",
    "phải",
    "không được",
    "đừng",
    "luôn",
    "chỉ",
)
_DECISIONS = (
    "decid",
    "decision",
    "we will use",
    "i will use",
    "instead of",
    "chosen",
    "chose ",
    "quyết định",
    "chọn ",
    "thay vì",
)
_NEXT = ("todo", "next step", "next:", "still to", "remaining", "later", "bước tiếp", "việc còn", "tiếp theo")
_TROUBLE = (
    "error",
    "failed",
    "could not",
    "cannot",
    "denied",
    "refused",
    "not found",
    "does not occur",
    "no such",
    "lỗi",
    "không thể",
)
_OLD_HEADINGS = {
    "## goal": "goal",
    "## constraints & preferences": "constraints",
    "### done": "done",
    "### in progress": "in_progress",
    "### blocked": "blocked",
    "## key decisions": "decisions",
    "## next steps": "next_steps",
    "## critical context": "context",
}
_MOST = 60
# Marks and ids of calls, which stand with their outcome among what was done.
_CALLS = ("tool_use", "tool_result", "toolu_", "off_")
_EDGES = ".,;:!?()[]{}<>\"'`*…"


@dataclass(frozen=True, slots=True)
class Extract:
    goal: Sequence[str]
    constraints: Sequence[str]
    done: Sequence[str]
    in_progress: Sequence[str]
    blocked: Sequence[str]
    decisions: Sequence[str]
    next_steps: Sequence[str]
    context: Sequence[str]


def extract(found: Sequence[Utterance]) -> Extract:
    """The newest come first where room may end, after the first goal. An earlier summary is carried over once."""
    named = [each for each in found if each.role] or list(found)
    old = _earlier_summary(named)
    spoken = [each for each in named if each.role != "summary"]
    requests = [text for each in spoken if each.role in ("user", "") and (text := _text(each))]
    people = [line for each in spoken if each.role in ("user", "assistant", "") for line in _lines(each)]
    outcomes = list(_outcomes(spoken))
    troubles = [text for text in outcomes if _says(text, _TROUBLE)]
    successes = [text for text in outcomes if not _says(text, _TROUBLE)]
    return Extract(
        goal=_once([*(old["goal"] or requests)[:1], *reversed(requests), *old["goal"]]),
        constraints=_once([*old["constraints"], *(line for line in people if _says(line, _LIMITS))]),
        done=_once([*reversed(successes), *old["done"]]),
        in_progress=_once(requests[-1:] or old["in_progress"]),
        blocked=_once([*reversed(troubles), *old["blocked"]]),
        decisions=_once([*old["decisions"], *(line for line in people if _says(line, _DECISIONS))]),
        next_steps=_once([*(line for line in people if _says(line, _NEXT)), *old["next_steps"]]),
        context=_once(_identifiers(spoken, old["context"])),
    )


def _once(items: Iterable[str]) -> Sequence[str]:
    return list(dict.fromkeys(" ".join(item.split()) for item in items if item.strip()))[:_MOST]


def _lines(each: Utterance) -> Iterator[str]:
    return (line.strip() for line in each.lines if line.strip())


def _text(each: Utterance) -> str:
    return " ".join(_lines(each))


def _says(line: str, marks: Sequence[str]) -> bool:
    lower = line.lower()
    return any(mark in lower for mark in marks)


def _outcomes(spoken: Sequence[Utterance]) -> Iterator[str]:
    """Calls and results with their headings, which hold names, ids and status; then what the assistant said."""
    for each in spoken:
        if each.role in ("call", "tool"):
            yield shortened(f"{each.mark.strip('#*<>[] ')} {shortened(_text(each), 200)}".strip(), 280)
        elif each.role == "assistant" and (text := _text(each)):
            yield shortened(text, 200)


def _earlier_summary(named: Sequence[Utterance]) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {field: [] for field in _OLD_HEADINGS.values()}
    for each in named:
        field = ""
        for line in each.lines if each.role == "summary" else ():
            bare = line.strip()
            if bare.startswith("#"):
                field = _OLD_HEADINGS.get(bare.lower(), "")
            elif field and bare.startswith("- ") and bare != "- none recorded":
                sections[field].append(bare[2:])
    return sections


def _identifiers(spoken: Sequence[Utterance], old: Sequence[str]) -> list[str]:
    """Paths, addresses, numbers with #, names of code and ids, most used first, then in order of appearance."""
    words = (word.strip(_EDGES) for each in spoken for line in (each.mark, *each.lines) for word in line.split())
    counts = Counter(word for word in words if _is_identifier(word))
    ranked = sorted(counts, key=lambda word: -counts[word])
    return [*ranked, *(word for word in old if word not in counts)]


def _is_identifier(word: str) -> bool:
    if not 3 <= len(word) <= 160 or word.startswith(_CALLS):
        return False
    if word.startswith(("http://", "https://")) or (word.startswith("/") and word[1].isalpha()):
        return True
    if word[0] == "#":
        return word[1:].isdigit()
    letters = any(char.isalpha() for char in word)
    return letters and (_is_name(word) or _is_id(word))


def _is_name(word: str) -> bool:
    """`notes.md`, `parse_path`, `run()`; not a word at the end of a sentence."""
    stem, dot, extension = word.rpartition(".")
    file = bool(dot and stem) and extension.isascii() and extension.isalnum() and 1 <= len(extension) <= 5
    return file or ("_" in word.strip("_") and word.replace("_", "").isalnum())


def _is_id(word: str) -> bool:
    """A uuid or digest: long, hexadecimal, with digits."""
    bare = word.replace("-", "")
    return (
        len(bare) >= 12
        and any(char.isdigit() for char in bare)
        and all(char in "0123456789abcdefABCDEF" for char in bare)
    )
