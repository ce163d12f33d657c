"""What the double remembers of one request and its answer."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Purpose = Literal["main", "summarize", "count", "models", "other"]


@dataclass(slots=True, eq=False)
class Exchange:
    """Request side: `body` is parsed JSON ({} when it could not be parsed); do not change it, equal messages are
    shared between requests. Of a chat request it is the block form, and `chat` is what was sent. `merged`: messages
    that follow one of the same role. `dropped`: paths of thinking blocks removed by drop_block. `input_tokens`:
    everything counted, cached or not.

    Answer side: `status` is 0 until the answer begins; `error` is the text of a refusal (`broke_rule`) or of a scripted
    error; `usage`, `blocks` and `stop_reason` are what the reply was to say; `oversized`: a recorded reply that the
    limits would have cut; `finished`: all of it was written; `left`: the client went first."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any] = field(default_factory=dict)
    chat: Mapping[str, Any] = field(default_factory=dict)
    purpose: Purpose = "other"
    status: int = 0
    error: str | None = None
    input_tokens: int = 0
    merged: int = 0
    dropped: Sequence[str] = ()
    usage: Mapping[str, Any] | None = None
    blocks: Sequence[Mapping[str, Any]] = ()
    stop_reason: str | None = None
    broke_rule: bool = False
    oversized: bool = False
    finished: bool = False
    left: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def request_id(self) -> str:
        return f"req_double_{self.number:06d}"

    @property
    def accepted(self) -> bool:
        return self.status == 200

    @property
    def user_id(self) -> str | None:
        found = (self.body.get("metadata") or {}).get("user_id")
        return None if found is None else str(found)

    @property
    def betas(self) -> frozenset[str]:
        return frozenset(part.strip() for part in self.headers.get("anthropic-beta", "").split(","))
