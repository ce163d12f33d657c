"""What one run's loop works with."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.conversation.model_profile import ModelProfile
from app.conversation.run import Run
from app.conversation.session import Session
from app.middleware.chain import Middleware
from app.ports import Clock, IdSource, Provider, TranscriptStore, TurnLog
from app.tools.registry import Registry


@dataclass(frozen=True, slots=True)
class Limits:
    """`tool_timeout_s`: one call, in seconds. `parallel_tools`: calls of one batch that run at once."""

    tool_timeout_s: float
    model_calls: int
    parallel_tools: int


@dataclass(frozen=True, slots=True)
class Workbench:
    """What all runs of a server share."""

    provider: Provider
    tools: Registry
    stack: Sequence[Middleware]
    transcript: TranscriptStore
    clock: Clock
    ids: IdSource
    limits: Limits


@dataclass(frozen=True, slots=True)
class Turn:
    """One run at work. What it has done so far is read back from `log`, never kept beside it."""

    session: Session
    run: Run
    profile: ModelProfile
    log: TurnLog
    bench: Workbench
