"""Markers: what stands in the view for text and media that were taken out of it.

Each holds the session's sentinel, which no model can guess: a call whose arguments hold it copies a marker, and must
not run.
"""

from hashlib import blake2b

from app.context.wording import WORDINGS
from app.conversation.media import base64_bytes
from app.conversation.messages import Block

_KIND_CHARS = 64  # longer than any media type; the field may come from an import


def sentinel(session_id: str) -> str:
    """The same for a session for ever; session ids are opaque and random."""
    return "hango-" + blake2b(session_id.encode(), digest_size=8, person=b"hango marker").hexdigest()


def result_path(seq: int, index: int) -> str:
    """The text of a call's result: seq of the assistant row, position among its tool_use blocks from 0."""
    return f"/tool_results/{seq:06}-{index:02}.txt"


def arguments_path(seq: int, index: int) -> str:
    return f"/tool_results/{seq:06}-{index:02}.args.json"


def user_path(seq: int, index: int) -> str:
    """A block of a user row: the row's own seq, and the position in its content."""
    return f"/tool_results/{seq:06}-{index:02}.user.txt"


def result_placeholder(shape: int, text: str, path: str, mark: str) -> str:
    return WORDINGS[shape].result.format(size=len(text), path=path, mark=mark)


def preview(shape: int, text: str, path: str, mark: str) -> str:
    """Start and end of a text, its size, and from where to read on. Only for texts longer than the preview."""
    wording = WORDINGS[shape]
    half = wording.preview_chars // 2
    # A line that is cut off in its second half is better read whole from the file.
    line_end = text.rfind("\n", half // 2, half)
    start, end = text[:half] if line_end < 0 else text[:line_end], text[-half:]
    left = len(text) - len(start) - len(end)
    place = _place(start, line_end >= 0)
    return wording.preview.format(size=len(text), path=path, place=place, mark=mark, start=start, left=left, end=end)


def _place(start: str, whole_lines: bool) -> str:
    """Where the text after `start` begins, in the words of read_file."""
    line, column = start.count("\n") + 1, len(start) - start.rfind("\n")
    return f"offset={line + 1}" if whole_lines else f"offset={line}, column={column}"


def argument_placeholder(shape: int, text: str, path: str, mark: str) -> str:
    wording = WORDINGS[shape]
    return wording.argument.format(start=text[: wording.argument_chars], size=utf8_size(text), path=path, mark=mark)


def media_placeholder(shape: int, block: Block, path: str, mark: str) -> str:
    what = _described(block.get("source"))
    return WORDINGS[shape].media.format(kind=block["type"], what=what, path=path, mark=mark)


def _described(source: object) -> str:
    """Kind and size, never content or address: an address may be a whole picture."""
    match source:
        case {"type": "base64", "data": str(data)}:
            return f"{_kind(source)}, {base64_bytes(data)} bytes"
        case {"type": "text", "data": str(text)}:
            return f"{_kind(source)}, {len(text)} characters"
    return _kind(source)


def _kind(source: object) -> str:
    match source:
        case {"media_type": str(kind)} | {"type": str(kind)}:
            return kind[:_KIND_CHARS]
    return "of unknown kind"


def holds_sentinel(value: object, mark: str) -> bool:
    """Whether any text or key of a JSON value holds it. Without recursion: depth is the model's choice."""
    left = [value]
    while left:
        match left.pop():
            case str(text):
                if mark in text:
                    return True
            case dict(fields):
                left += fields.keys()
                left += fields.values()
            case list(items) | tuple(items):
                left += items
    return False


def utf8_size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
