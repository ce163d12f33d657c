"""/tool_results: stored rows as read-only files, so that nothing is written twice and no path can break."""

import json
from collections.abc import Iterator, Sequence

from app.context.places import Place, call_places
from app.conversation.media import MEDIA_TYPES
from app.conversation.messages import Block, StoredMessage, tool_uses
from app.conversation.run import CallState, ToolCall
from app.conversation.virtual_path import Area, canonical
from app.errors import FileMissing
from app.filesystem.layer import RenderedArea
from app.filesystem.os_errors import NO_FILE
from app.filesystem.result_parts import media_bytes, part_text, text_of_result
from app.ports import FileBackend, FileInfo, TranscriptStore

RESULT, ARGUMENTS, USER = "txt", "args.json", "user"
USER_TEXT = f"{USER}.txt"
# Rows from a call's on among which its result is looked for: the next one, but for rows that no view shows.
NEAR = 16
# Keeps a made-up name inside the integers of every store.
MAX_DIGITS = 9


def result_name(seq: int, index: int, kind: str) -> str:
    """File name below /tool_results. `index` counts the message's tool_use blocks, for a user text all its blocks."""
    return f"{seq:06d}-{index:02d}.{kind}"


class ResultFiles(RenderedArea):
    """Renders /tool_results from the transcript.

    `<seq>-<index>.txt` is a result, `.args.json` the arguments of its call. `.user.txt`, a block of a user row, and the
    media of results (`.<part>.png`) and of user rows (`.user.png`) can be read and are not listed.
    """

    def __init__(self, inner: FileBackend, transcript: TranscriptStore) -> None:
        super().__init__(inner, Area.RESULTS, "the transcript")
        self._transcript = transcript

    async def _render(self, session_id: str, names: tuple[str, ...]) -> bytes | None:
        data = await self._found(session_id, *_parse_name(names))
        return data.encode() if isinstance(data, str) else data

    async def _listed(self, session_id: str, names: tuple[str, ...]) -> Sequence[FileInfo]:
        return [
            FileInfo(canonical(Area.RESULTS, (name,)), None, None)
            for call in await self._transcript.calls(session_id, None)
            for name in _names(call)
            if names in ((), (name,))
        ]

    async def _found(self, session_id: str, seq: int, index: int, kind: str) -> str | bytes | None:
        rows = await self._transcript.page(session_id, after=seq - 1, limit=NEAR)
        if not rows or rows[0].seq != seq:
            return None
        if kind.startswith(f"{USER}."):
            return _of_user(rows[0], index, kind.removeprefix(f"{USER}."))
        calls = tool_uses(rows[0].content)
        if rows[0].role != "assistant" or index >= len(calls):
            return None
        if kind == ARGUMENTS:
            return json.dumps(calls[index]["input"], ensure_ascii=False, indent=2)
        content = _answer(rows, (seq, index))
        if content is None:
            # Not in a row yet, because the batch is still running.
            stored = await self._transcript.calls(session_id, seq)
            content = next((call.result for call in stored if call.index == index), None)
        return None if content is None else _of_result(content, seq, index, kind)


def _names(call: ToolCall) -> Iterator[str]:
    if call.state is CallState.DONE:
        yield result_name(call.message_seq, call.index, RESULT)
    yield result_name(call.message_seq, call.index, ARGUMENTS)


def _parse_name(names: tuple[str, ...]) -> tuple[int, int, str]:
    """Raises FileMissing for every name that `result_name` does not make."""
    name = names[0] if len(names) == 1 else ""
    numbers, _, kind = name.partition(".")
    seq, _, index = numbers.partition("-")
    if all(part.isascii() and part.isdigit() and len(part) <= MAX_DIGITS for part in (seq, index)):
        parsed = int(seq), int(index), kind
        if _is_kind(kind) and result_name(*parsed) == name:
            return parsed
    raise FileMissing(NO_FILE)


def _is_kind(kind: str) -> bool:
    if kind in (RESULT, ARGUMENTS, USER_TEXT):
        return True
    part, _, ending = kind.partition(".")
    return ending in MEDIA_TYPES and (part == USER or (part.isascii() and part.isdigit() and len(part) <= MAX_DIGITS))


def _of_user(row: StoredMessage, index: int, ending: str) -> str | bytes | None:
    if row.role != "user" or index >= len(row.content) or row.content[index].get("type") == "tool_result":
        return None
    block = row.content[index]
    return part_text(block, _stem(row.seq, index, USER)) if ending == RESULT else media_bytes(block, ending)


def _of_result(content: str | list[Block], seq: int, index: int, kind: str) -> str | bytes | None:
    if kind == RESULT:
        return text_of_result(content, _stem(seq, index))
    part, _, ending = kind.partition(".")
    parts = () if isinstance(content, str) else content
    return media_bytes(parts[int(part)], ending) if int(part) < len(parts) else None


def _stem(seq: int, index: int, *more: str) -> str:
    return canonical(Area.RESULTS, (".".join([result_name(seq, index, "").rstrip("."), *more]),))


def _answer(rows: Sequence[StoredMessage], call: Place) -> str | list[Block] | None:
    """Paired as in a view; None while the call has no row that answers it."""
    answers = {place: at for at, place in call_places(rows).items()}
    if call not in answers:
        return None
    seq, index = answers[call]
    block = next(row.content[index] for row in rows if row.seq == seq)
    content: str | list[Block] = block.get("content", "")
    return content
