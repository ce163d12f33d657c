"""A session's life on the twins of the stores, one event loop, any number of processes after one another."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from app.context.rules import violation
from app.context.view import render_view
from app.conversation.events import TERMINAL_EVENTS, EventType
from app.conversation.messages import StoredMessage, tool_results, tool_uses
from app.conversation.request import ModelRequest
from app.conversation.run import LIVE, TERMINAL, Run, RunStatus
from app.conversation.session import Session
from app.conversation.usage import UsageByPurpose, add_usage
from app.errors import ProviderFailure
from app.providers.scripted import ScriptedProvider, Step, call, say
from app.turns.service import Turns
from tests.pure.context.histories import serialized
from tests.twins import LEASE_S, PROCESSES, FakeTool, Works, echo

Value = TypeVar("Value")
REFUSED = ProviderFailure("provider_rejected", "no", transient=False, status=400)
SUMMARY = "# Conversation summary\n\n## Goal\nGo on.\n"


@dataclass
class Known:
    """What the model of a session says: rows as they were first seen, runs by key, ended runs with their status."""

    session: Session
    rows: list[str] = field(default_factory=list)
    ended: dict[str, RunStatus] = field(default_factory=dict)
    keys: dict[str, tuple[str, str]] = field(default_factory=dict)


class Life:
    """`plan`: what the next main calls of the model do, in order; without one it says something."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.gate = asyncio.Event()
        self.plan: list[str] = []
        self.works = Works()
        self.processes = 0
        self.turns = self.run(self.next_process())

    def run(self, doing: Coroutine[Any, Any, Value]) -> Value:
        return self.runner.run(asyncio.wait_for(doing, 30))

    async def next_process(self) -> Turns:
        self.processes += 1
        self.gate = asyncio.Event()
        provider = ScriptedProvider(*[self.choose] * 2000)
        tools = (FakeTool("held", self.held), echo("echo"), FakeTool("safe", self.held, safe=True))
        turns = self.works.process(f"process {self.processes}", self.works.with_provider(provider, tools))
        if self.processes > 1:
            self.works.clock.advance(LEASE_S + 1)
            await turns._recover()
        return turns

    async def held(self, _: object) -> str:
        await self.gate.wait()
        return "let go"

    def choose(self, request: ModelRequest) -> Step:
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
        for _ in range(400):
            await asyncio.sleep(0)

    async def stop(self) -> None:
        self.gate.set()
        for turns in PROCESSES:
            await turns.stop()
        PROCESSES.clear()

    def runs(self, known: Known) -> list[Run]:
        return sorted(self.works.state.room(known.session.id).runs.values(), key=lambda run: run.turn)

    def live(self, known: Known) -> list[Run]:
        return [run for run in self.runs(known) if run.status in LIVE]

    async def check(self, known: Known) -> None:
        rows, runs = await self.works.rows(known.session), self.runs(known)
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
        if not self.live(known):
            await self.check_sums(known, runs)

    async def check_log(self, known: Known, runs: list[Run]) -> None:
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

    async def check_sums(self, known: Known, runs: list[Run]) -> None:
        total: UsageByPurpose = {}
        for run in runs:
            for purpose, usage in run.usage.items():
                total = add_usage(total, purpose, usage)
        stored = await self.works.sessions.get("t", known.session.id)
        assert stored.usage == total
        assert stored.status == "idle"


def check_batches(rows: list[StoredMessage], running: bool) -> None:
    """Every call of a stored batch is answered once, in order, by the next row; the newest may still be at work.

    An import keeps the order that its client chose.
    """
    for row, answer in zip(rows, [*rows, None][1:], strict=True):
        used = [block["id"] for block in tool_uses(row.content)]
        if used and answer is None:
            assert running
        elif used:
            answers = [block["tool_use_id"] for block in tool_results(answer.content)]
            assert answers == used or (row.run_id is None and sorted(answers) == sorted(used))
