"""A tiny reader of event streams."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

TERMINAL = {"turn.completed", "turn.failed", "turn.cancelled", "turn.interrupted"}


@dataclass(frozen=True)
class Frame:
    """`seq` is None for a preview, `type` is "ping" for a comment."""

    type: str
    seq: int | None = None
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def durable(self) -> bool:
        return self.seq is not None


class Reader:
    """Keeps what it has read in `frames`."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.frames: list[Frame] = []
        self._lines = response.aiter_lines()

    @classmethod
    async def of(cls, response: httpx.Response) -> "Reader":
        if response.status_code != 200:
            raise AssertionError((await response.aread()).decode())
        return cls(response)

    async def __aiter__(self) -> AsyncIterator[Frame]:
        fields: dict[str, str] = {}
        async for line in self._lines:
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                self.frames.append(_frame(fields))
                fields = {}
                yield self.frames[-1]

    async def until(self, kind: str) -> Frame:
        """Reads up to the next frame of this type."""
        async for frame in self:
            if frame.type == kind:
                return frame
            assert frame.type != "turn.failed", frame.data
        raise AssertionError(f"the stream ended without {kind}: {self.types}")

    async def rest(self) -> list[Frame]:
        """Reads to the end; every frame of the stream."""
        async for _ in self:
            pass
        return self.frames

    @property
    def types(self) -> list[str]:
        return [frame.type for frame in self.frames]

    @property
    def durable(self) -> list[Frame]:
        return [frame for frame in self.frames if frame.durable]

    @property
    def run_id(self) -> str:
        return next(frame.data["run_id"] for frame in self.frames if frame.durable)

    def text(self, kind: str = "text.delta") -> str:
        return "".join(frame.data["data"]["text"] for frame in self.frames if frame.type == kind)


def _frame(fields: dict[str, str]) -> Frame:
    if "" in fields:
        return Frame("ping")
    seq = int(fields["id"]) if "id" in fields else None
    return Frame(fields["event"], seq, json.loads(fields["data"]))
