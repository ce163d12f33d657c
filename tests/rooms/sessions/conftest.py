from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

import pytest

from app.context.estimate import HeuristicEstimator
from app.conversation.messages import text_block
from app.conversation.model_profile import TABLE, ModelProfile, resolve
from app.conversation.request import ToolDefinition
from app.conversation.session import Session
from app.filesystem.memory import MemoryFiles
from app.sessions.opening import Offer
from app.sessions.service import Sessions
from app.storage.memory.ledger import MemoryLedger
from app.storage.memory.sessions import MemorySessions
from app.storage.memory.state import MemoryState
from app.storage.memory.transcript import MemoryTranscript


class StillClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None: ...


@dataclass
class NumberedIds:
    numbers: count = field(default_factory=lambda: count(1))

    def new(self, prefix: str) -> str:
        return f"{prefix}_{next(self.numbers)}"


def profiles(model: str) -> ModelProfile:
    return resolve(model, TABLE)


@pytest.fixture
def state() -> MemoryState:
    return MemoryState(StillClock())


@pytest.fixture
def sessions(state: MemoryState) -> Sessions:
    tool = ToolDefinition("read_file", "Reads a file.", {"type": "object"})

    async def tools_of(session: Session) -> tuple[ToolDefinition, ...]:
        return (tool, *(ToolDefinition(**own) for own in session.settings.tools))

    return Sessions(
        store=MemorySessions(state),
        transcript=MemoryTranscript(state),
        files=MemoryFiles(),
        ids=NumberedIds(),
        estimator=HeuristicEstimator(),
        profiles=profiles,
        base_system=(text_block("You are an agent."),),
        offer=Offer(frozenset({tool.name})),
        tools_of=tools_of,
        ledgers=MemoryLedger(state),
        caches=True,
    )
