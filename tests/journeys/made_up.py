"""A recording made up of all that compaction meets: parallel calls, errors, long arguments, results and pictures, one
long turn among short ones, a letter of more than one byte in every text."""

import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

PIXELS = 1096  # each way: what the double charges for a picture is what the API charges for one of this size
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}}
TURNS = (2, 3, 24, 0, 6, 1, 8)


def picture() -> str:
    """A white PNG, one bit a pixel, in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    line = b"\0" + b"\xff" * (PIXELS // 8)
    head = struct.pack(">IIBBBBB", PIXELS, PIXELS, 1, 0, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(line * PIXELS)), chunk(b"IEND", b""))
    return b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()


def made_up() -> dict[str, Any]:
    """Some 60 steps and 60,000 tokens of 3 bytes."""
    numbers = iter(range(1, 1000))
    return {
        "id": "made_up",
        "system": "You keep the harbour's files. Übung macht den Meister.",
        "tools": [
            {"name": name, "description": f"Can {name} a file.", "input_schema": SCHEMA} for name in ("read", "write")
        ],
        "turns": [_turn(number, steps, numbers) for number, steps in enumerate(TURNS, 1)],
    }


def _turn(number: int, count: int, numbers: Iterator[int]) -> dict[str, Any]:
    steps = [_step([_call(next(numbers)) for _ in range(1 + place % 3 // 2 * 3)]) for place in range(count)]
    closing = {"text": f"Turn {number} is done: see /harbour/report_{number}.md.", "tool_uses": [], "tool_results": []}
    return {"user": f"Request {number}: put /harbour/quay_{number}.txt in order, please.", "steps": [*steps, closing]}


def _step(calls: list[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    uses, results = [list(part) for part in zip(*calls, strict=True)]
    # Results are recorded as they came, the last call's first.
    return {"text": f"Now {uses[0]['id']}.", "tool_uses": uses, "tool_results": results[::-1]}


def _call(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    name, given = "read", {"path": f"/harbour/files/crate_{number}.txt"}
    content: Any = _lines(number, 12)
    if number % 7 == 3:
        name, given = "write", {**given, "text": _lines(number, 60)}
        content = "written"
    if number % 11 == 5:
        content = _lines(number, 200)
    if number % 13 == 6:
        source = {"type": "base64", "media_type": "image/png", "data": picture()}
        content = [{"type": "text", "text": f"crate {number}"}, {"type": "image", "source": source}]
    use = {"id": f"toolu_made_{number:03}", "name": name, "input": given}
    return use, {"tool_use_id": use["id"], "content": content, "is_error": number % 9 == 4}


def _lines(number: int, count: int) -> str:
    return "\n".join(
        f"crate {number}, line {line}: see /harbour/lists/list_{number}_{line}.md – ok" for line in range(count)
    )
