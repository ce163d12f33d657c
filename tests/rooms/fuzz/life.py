"""A session's life, one event loop, any number of processes after one another, on stores in memory or in PostgreSQL."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, TypeVar

import pytest

from app.context.rules import violation
from app.context.view import render_view
from app.conversation.events import TERMINAL_EVENTS, EventType, NewEvent
from app.conversation.messages import StoredMessage, tool_results, tool_uses
from app.conversation.model_profile import ModelProfile
from app.conversation.request import ModelRequest
from app.conversation.run import LIVE, TERMINAL, Lease, Run, RunStatus, Step
from app.conversation.session import Session
from app.conversation.usage import UsageByPurpose, add_usage
from app.errors import LeaseLost, ProviderFailure
from app.providers.scripted import ScriptedProvider, call, say
from app.providers.scripted import Step as Scripted
from app.turns.service import Turns
from tests.pure.context.histories import serialized
from tests.rooms.fuzz.life_stores import MemoryWorks
from tests.twins import PROCESSES, FakeTool, echo, profile_of

Value = TypeVar("Value")
REFUSED = ProviderFailure("provider_rejected", "no", transient=False, status=400)
SUMMARY = "# Conversation summary\n\n## Goal\nGo on.\n"
WINDOW = 16_384
COUNTED = {"summarization", "mechanical_truncation"}


def small(session: Session, model: str) -> ModelProfile:
    return replace(profile_of(session, model), context_window_tokens=WINDOW)


@dataclass
class Known:
    """What the model of a session says: rows as they were first seen, runs by key, ended runs with their status."""

    session: Session
    rows: list[str] = field(default_factory=list)
    ended: dict[str, RunStatus] = field(default_factory=dict)
    keys: dict[str, tuple[str, str]] = field(default_factory=dict)


class Life:
    """`plan`: what the next main calls of the model do, in order; without one it says something."""

    def __init__(self, make_works: Callable[[], MemoryWorks]) -> None:
        self.runner = asyncio.Runner()
        self.gates: list[asyncio.Event] = []
        self.plan: list[str] = []
        self.works = self.run(self._make(make_works))
        self.processes = 0
        self.turns = self.run(self.next_process())

    @staticmethod
    async def _make(make_works: Callable[[], MemoryWorks]) -> MemoryWorks:
        return make_works()

    def run(self, doing: Coroutine[Any, Any, Value]) -> Value:
        return self.runner.run(asyncio.wait_for(doing, 30))

    async def next_process(self) -> Turns:
        self.processes += 1
        self.gates.append(asyncio.Event())
        provider = ScriptedProvider(*[self.choose] * 2000)
        tools = (FakeTool("held", self.held), echo("echo"), FakeTool("safe", self.held, safe=True))
        if self.processes > 1:
            await self.works.let_leases_expire()
        turns = self.works.process(f"process {self.processes}", self.works.with_provider(provider, tools), small)
        if self.processes > 1:
            await turns._recover()
        return turns

    @property
    def gate(self) -> asyncio.Event:
        """Of the newest process."""
        return self.gates[-1]

    async def held(self, _: object) -> str:
        await self.gate.wait()
        return "let go"

    def choose(self, request: ModelRequest) -> Scripted:
        if not request.tools:
            return say(SUMMARY)
        match self.plan.pop(0) if self.plan else "say":
            case "stand":
                return [self.gate, *[REFUSED]]
            case "fail":
                return REFUSED
            case "say":
                return say("fine")
            case tool:
                return call(tool, {})

    async def die(self) -> None:
        """As kill -9: the tasks are gone, no lease is let go of."""
        tasks = list(self.turns._runner._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def quiet(self) -> None:
        """Until every run stands at a gate or has ended."""
        still = 0
        while still < 100:
            await asyncio.sleep(0)
            still = 0 if self.works.busy or self._at_work() else still + 1

    def _at_work(self) -> bool:
        running = sum(len(turns._runner._tasks) for turns in PROCESSES)
        return running > sum(len(gate._waiters) for gate in self.gates)

    async def wake(self, old: Turns, gate: asyncio.Event, stolen: Sequence[Lease], known: Sequence[Known]) -> None:
        """A process that has lost its leases goes on: nothing that it writes is taken."""
        await self.quiet()
        before = [await self.stored(one) for one in known]
        for lease in stolen:
            with pytest.raises(LeaseLost):
                await self.works.runs.write(lease, Step(events=(NewEvent(EventType.CONTEXT_WARNING, {}),)))
        gate.set()
        await self.quiet()
        assert [await self.stored(one) for one in known] == before
        assert not old._runner.leases

    async def stored(self, known: Known) -> tuple[Any, ...]:
        runs = await self.runs(known)
        return await self.works.rows(known.session), await self.works.log(known.session), runs

    async def stop(self) -> None:
        self.gate.set()
        for turns in PROCESSES:
            await turns.stop()
        PROCESSES.clear()
        await self.works.close()

    async def runs(self, known: Known) -> Sequence[Run]:
        return (await self.works.runs.list(known.session.id, 0, 10_000)).rows

    def runs_of(self, known: Known) -> Sequence[Run]:
        return self.run(self.runs(known))

    def live(self, known: Known) -> list[Run]:
        return [run for run in self.runs_of(known) if run.status in LIVE]

    async def check(self, known: Known) -> None:
        rows, runs = await self.works.rows(known.session), await self.runs(known)
        stored = serialized(rows)
        assert stored[: len(known.rows)] == known.rows, "a stored row has changed"
        known.rows = stored
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        check_batches(rows, any(run.status is RunStatus.RUNNING for run in runs))
        assert violation(render_view([*rows, *rows[:1]])) is None or not rows
        await self.check_log(known, runs)
        assert sum(run.status is RunStatus.RUNNING for run in runs) <= 1
        for run in runs:
            assert known.ended.get(run.id, run.status) is run.status, "an ended run has changed"
        known.ended = {run.id: run.status for run in runs if run.status in TERMINAL}
        if not any(run.status in LIVE for run in runs):
            await self.check_sums(known, runs)

    async def check_log(self, known: Known, runs: Sequence[Run]) -> None:
        log = await self.works.log(known.session)
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        for run in runs:
            own = [event.type for event in log if event.run_id == run.id]
            ends = [kind for kind in own if kind in TERMINAL_EVENTS]
            assert ends == ([f"turn.{run.status}"] if run.status in TERMINAL else [])
            assert not ends or own[-1] in TERMINAL_EVENTS
            assert own.count(EventType.TURN_STARTED) <= 1
        began = [event.run_id for event in log if event.type is EventType.TURN_STARTED]
        assert began == sorted(began, key=[run.id for run in runs].index), "turns began out of order"

    async def check_sums(self, known: Known, runs: Sequence[Run]) -> None:
        total: UsageByPurpose = {}
        for run in runs:
            for purpose, usage in run.usage.items():
                total = add_usage(total, purpose, usage)
        stored = await self.works.sessions.get("t", known.session.id)
        assert stored.usage == total
        assert stored.status == "idle"
        await self.check_counters(known, stored)

    async def check_counters(self, known: Known, stored: Session) -> None:
        """The newest request, as an event of each run that sent one tells it."""
        log, rows = await self.works.log(known.session), await self.works.rows(known.session)
        compacted = [event.data for event in log if event.type is EventType.CONTEXT_COMPACTED]
        assert stored.compactions == sum(data["tier"] in COUNTED for data in compacted)
        told = [(event.run_id, event.data) for event in log if event.type is EventType.SESSION_USAGE]
        answered = [(row.run_id, row.usage.total_input) for row in rows if row.usage and row.usage.total_input]
        assert stored.last_input_tokens == (told[-1][1]["last_input_tokens"] if told else 0)
        assert {run_id for run_id, _ in answered} <= {run_id for run_id, _ in told}
        assert len({run_id for run_id, _ in told}) == len(told)
        by_usage = [(run_id, data["last_input_tokens"]) for run_id, data in told if not data["estimated"]]
        assert {*by_usage} <= {*answered}


def check_batches(rows: list[StoredMessage], running: bool) -> None:
    """Every call of a stored batch is answered once, in order, by the next row; the newest may still be at work.

    An import keeps the order that its client chose, and its neighbours of one role.
    """
    groups = [list(group) for _, group in groupby(rows, lambda row: row.role)]
    for group, following in zip(groups, [*groups, []][1:], strict=True):
        used = [block["id"] for row in group for block in tool_uses(row.content)]
        answers = [block["tool_use_id"] for row in following for block in tool_results(row.content)]
        if used and not following:
            assert running
        elif used:
            assert answers == used or (group[0].run_id is None and sorted(answers) == sorted(used))
