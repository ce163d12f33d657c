"""/tool_results: stored rows as read-only files, so that nothing is written twice and no path can break."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from app.conversation.messages import Block, StoredMessage, tool_results, tool_uses
from app.conversation.run import CallState, ToolCall
from app.conversation.virtual_path import Area, canonical, folder_parts, parse_path
from app.errors import FileMissing, PathRefused
from app.filesystem.os_errors import NO_FILE
from app.ports import FileBackend, FileEnd, FileInfo, TranscriptStore

RESULT, ARGUMENTS, USER_TEXT = "txt", "args.json", "user.txt"
# Keeps a made-up name inside the integers of every store.
MAX_DIGITS = 9


def result_name(seq: int, index: int, kind: str) -> str:
    """File name below /tool_results. `index` counts the message's tool_use blocks, for a user text all its blocks."""
    return f"{seq:06d}-{index:02d}.{kind}"


class ResultFiles:
    """FileBackend that renders /tool_results from the transcript and hands every other area to `inner`.

    `<seq>-<index>.txt` is a result, `.args.json` the arguments of its call; `.user.txt`, the text of a user row, can be
    read and is not listed.
    """

    def __init__(self, inner: FileBackend, transcript: TranscriptStore) -> None:
        self._inner = inner
        self._transcript = transcript

    async def read(self, session_id: str, path: str) -> bytes:
        area, names = parse_path(path)
        if area is not Area.RESULTS:
            return await self._inner.read(session_id, path)
        text = await self._render(session_id, *_parse_name(names))
        if text is None:
            raise FileMissing(NO_FILE)
        return text.encode()

    async def read_end(self, session_id: str, path: str, length: int) -> FileEnd:
        if parse_path(path)[0] is Area.RESULTS:
            data = await self.read(session_id, path)
            return FileEnd(data[-length:], len(data))
        return await self._inner.read_end(session_id, path, length)

    async def _render(self, session_id: str, seq: int, index: int, kind: str) -> str | None:
        rows = await self._transcript.page(session_id, after=seq - 1, limit=2)
        if not rows or rows[0].seq != seq:
            return None
        if kind == USER_TEXT:
            return _user_text(rows[0], index)
        calls = tool_uses(rows[0].content)
        if rows[0].role != "assistant" or index >= len(calls):
            return None
        if kind == ARGUMENTS:
            return json.dumps(calls[index]["input"], ensure_ascii=False, indent=2)
        content = _answer(rows[1:], calls[index]["id"])
        if content is None:
            # Not in a row yet, because the batch is still running.
            stored = await self._transcript.calls(session_id, seq)
            content = next((call.result for call in stored if call.index == index), None)
        return None if content is None else result_text(content)

    async def write(self, session_id: str, path: str, data: bytes) -> None:
        _refuse_results(path)
        await self._inner.write(session_id, path, data)

    async def append(self, session_id: str, path: str, data: bytes, expected_size: int | None = None) -> None:
        _refuse_results(path)
        await self._inner.append(session_id, path, data, expected_size)

    async def list(self, session_id: str, path: str) -> Sequence[FileInfo]:
        parts = folder_parts(path)
        if parts and parts[0] != Area.RESULTS:
            return await self._inner.list(session_id, path)
        files = [
            FileInfo(canonical(Area.RESULTS, (name,)), None, None)
            for call in await self._transcript.calls(session_id, None)
            for name in _names(call)
            if parts[1:] in ((), (name,))
        ]
        if not parts:
            files += await self._inner.list(session_id, path)
        return sorted(files, key=lambda info: info.path)

    async def delete_session(self, session_id: str) -> None:
        await self._inner.delete_session(session_id)

    async def check(self) -> None:
        await self._inner.check()


def _refuse_results(path: str) -> None:
    if parse_path(path)[0] is Area.RESULTS:
        raise PathRefused(f"/{Area.RESULTS} is rendered from the transcript; nothing can be written there.")


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
        if kind in (RESULT, ARGUMENTS, USER_TEXT) and result_name(*parsed) == name:
            return parsed
    raise FileMissing(NO_FILE)


def _user_text(row: StoredMessage, index: int) -> str | None:
    if row.role != "user" or index >= len(row.content):
        return None
    text: str | None = row.content[index].get("text")
    return text


def _answer(rows: Sequence[StoredMessage], tool_use_id: str) -> str | list[Block] | None:
    for row in rows:
        for block in tool_results(row.content):
            if block["tool_use_id"] == tool_use_id:
                content: str | list[Block] = block.get("content", "")
                return content
    return None


def result_text(content: str | list[Block]) -> str:
    """The text of a result; other blocks are named, never pasted."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] if block.get("type") == "text" else _named(block) for block in content)


def _named(block: Block) -> str:
    """`[image: image/png, 1234 bytes]`; a source without data is named by its kind."""
    source: dict[str, Any] = block.get("source") or {}
    data = source.get("data")
    if not isinstance(data, str):
        return f"[{block.get('type')}: {source.get('type', 'no source')}]"
    size = len(data) * 3 // 4 - data[-2:].count("=") if source.get("type") == "base64" else len(data.encode())
    return f"[{block.get('type')}: {source.get('media_type')}, {size} bytes]"
