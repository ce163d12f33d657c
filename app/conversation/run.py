"""A run: the execution record of one turn, its tool calls, and the fenced steps that write it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from app.conversation.events import NewEvent, StoredEvent
from app.conversation.messages import Block, Content, Role
from app.conversation.usage import Usage, UsageByPurpose


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


LIVE = frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING})
TERMINAL = frozenset(RunStatus) - LIVE

RunKind = Literal["turn", "compact", "base"]
"""`base`: turn 0 of a session that began with records, which it holds; it was over before the session was there."""


@dataclass(frozen=True, slots=True)
class RunInput:
    """What the client posted; the message becomes a row only when the run starts."""

    content: Content
    model: str | None = None
    max_tokens: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """`turn` counts from 1 per session. `state` is `runs.state_json`. `error` is `{code, detail, ...}`."""

    id: str
    session_id: str
    turn: int
    kind: RunKind
    status: RunStatus
    input: RunInput
    model: str
    state: Mapping[str, Any]
    usage: UsageByPurpose
    stop_reason: str | None
    error: Mapping[str, Any] | None
    cancel_requested: bool
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewRun:
    id: str
    session_id: str
    input: RunInput
    model: str
    kind: RunKind = "turn"
    parent_run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write a run. Every write names the generation; a takeover raises it, and older ones are refused."""

    session_id: str
    run_id: str
    generation: int
    owner: str


class CallState(StrEnum):
    """ASKED: a person must allow it first. CLEARED: it may run, whatever the approvals say. WAITING: for the client's
    result."""

    PENDING = "pending"
    ASKED = "asked"
    CLEARED = "cleared"
    STARTED = "started"
    WAITING = "waiting"
    DONE = "done"


AWAITED = frozenset({CallState.ASKED, CallState.WAITING})
"""Somebody outside has to answer."""
KINDS = {CallState.ASKED: "approval", CallState.WAITING: "result"}
"""What of them is awaited."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool_use of an assistant message; `index` is its position among that message's tool_use blocks, from 0.

    `result` is the content of its tool_result block (a string or blocks), None until done. `deadline`: of one that is
    asked or waits.
    """

    message_seq: int
    index: int
    tool_use_id: str
    name: str
    state: CallState
    result: str | list[Block] | None = None
    is_error: bool = False
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A row to append. `calls` are stored beside it as pending (or done, when they are answered without running).

    `created_at`: of one that was said in another session, None: now.
    """

    id: str
    role: Role
    content: Content
    stop_reason: str | None = None
    usage: Usage | None = None
    user_visible: bool = True
    agent_visible: bool = True
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of a run. `last_input_tokens` None leaves the counter as it is."""

    status: RunStatus
    stop_reason: str | None = None
    error: Mapping[str, Any] | None = None
    last_input_tokens: int | None = None
    compactions: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One fenced transaction. Order inside: changes of calls, messages, events, run columns, closing.

    `messages`: rows to append. `calls`: the (pending) calls of the assistant message in `messages`; their
    `message_seq` is filled in by the store. `changes`: calls whose state or result changes.
    `events[i].message`: index into `messages`: the store turns it into a reference to the row.
    `usage`: the run's totals so far, None when unchanged. `state`: the new state_json, None when unchanged. `waits`:
    the run lets go of its lease and waits; one that was asked to stop is queued for its end.
    """

    messages: tuple[NewMessage, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    changes: tuple[ToolCall, ...] = ()
    events: tuple[NewEvent, ...] = ()
    usage: UsageByPurpose | None = None
    state: Mapping[str, Any] | None = None
    closing: Closing | None = None
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What is added to a waiting run from outside, by somebody who does not own it; nothing without changes.

    `resumes`: nothing is awaited any more, the run is queued again. `allowed`: tools that ask nobody from now on in
    this session.
    """

    changes: tuple[ToolCall, ...] = ()
    events: tuple[NewEvent, ...] = ()
    resumes: bool = False
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """What a step became: the seq of each message in order, and its events, whole. `last_event`: the session's newest
    event seq at the write."""

    message_seqs: tuple[int, ...]
    events: tuple[StoredEvent, ...]
    at: datetime
    last_event: int
