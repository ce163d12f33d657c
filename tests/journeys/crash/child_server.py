"""A server process whose ports tell a gate what passes: held at a named point, it is killed or stopped from outside.

HANGO_* as usual. HOLD names a point, for whatever comes there; or it is "asked": a turn is held where its
`metadata.hold` says, and a compaction where its instructions say. Tools leave their traces in the file named in TRACE.
"""

import asyncio
import itertools
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from contextvars import ContextVar
from pathlib import Path

from app import config, main
from app.conversation.events import EventType
from app.conversation.messages import tool_results
from app.conversation.reply import Delta, Reply, StreamItem
from app.conversation.request import ModelRequest, ToolDefinition
from app.conversation.run import Lease, NewRun, Step, Written
from app.conversation.tools import ToolRequest, ToolResult
from app.filesystem import descent
from app.filesystem.local import LocalFiles
from app.logs import configure
from app.ports import Plan, Provider, Taken
from app.storage import ownership
from app.storage.runs import PostgresRuns
from app.storage.sessions import PostgresSessions
from tests.journeys.crash.gate import ANY, Gate, say

GATE = Gate()
SWEEPS = itertools.count(1)
TAKING: ContextVar[str] = ContextVar("TAKING")
APPENDING: ContextVar[str] = ContextVar("APPENDING", default="")


def what(step: Step) -> str:
    """The name of a step: what it stores."""
    if step.closing is not None:
        return "closing"
    if step.waits:
        return "waiting"
    for message in step.messages:
        if message.role == "assistant":
            return "assistant"
        if tool_results(message.content):
            return "results"
    if step.changes:
        return str(step.changes[0].state)
    compacted = any(event.type is EventType.CONTEXT_COMPACTED for event in step.events)
    return "epoch" if compacted else "other"


class HeldRuns(PostgresRuns):
    async def accept(self, run: NewRun, *rest):
        if os.environ.get("HOLD") == "asked":
            metadata = run.input.metadata
            GATE.arm(run.session_id, metadata.get("hold") or metadata.get("instructions"))
        await GATE.passes(run.session_id, "accept:before")
        accepted = await super().accept(run, *rest)
        await GATE.passes(run.session_id, "accept:after")
        return accepted

    async def start(self, session_id: str, owner: str, plan: Plan) -> Taken | None:
        TAKING.set("start:in")
        await GATE.passes(session_id, "start:before")
        taken = await super().start(session_id, owner, plan)
        if taken is not None:
            await GATE.passes(session_id, "start:after")
        return taken

    async def take_over(self, owner: str, plan: Plan, dead: bool = True) -> Taken | None:
        TAKING.set("takeover:in")
        taken = await super().take_over(owner, plan, dead)
        if taken is None:
            say(f"sweep {next(SWEEPS)} found nothing")
        else:
            await GATE.passes(taken.lease.session_id, "takeover:after")
        return taken

    async def answer(self, session_id: str, *rest):
        await GATE.passes(session_id, "answer:before")
        answered = await super().answer(session_id, *rest)
        await GATE.passes(session_id, "answer:after")
        return answered

    async def write(self, lease: Lease, step: Step) -> Written:
        await GATE.passes(lease.session_id, f"{what(step)}:before")
        written = await super().write(lease, step)
        await GATE.passes(lease.session_id, f"{what(step)}:after")
        return written


class HeldSessions(PostgresSessions):
    """`plant:before`: the files of a session that begins with messages are written, its rows are not. `delete:after`:
    the rows are gone, the files are not."""

    async def create(self, session, messages, *rest):
        if messages:
            await GATE.passes(session.id, "plant:before")
        return await super().create(session, messages, *rest)

    async def delete(self, tenant: str, session_id: str):
        gone = await super().delete(tenant, session_id)
        await GATE.passes(session_id, "delete:after")
        return gone


def hold_while_taking() -> None:
    """Inside the transaction that takes a run."""
    write_step = ownership.write_step

    async def held(connection, lease, step):
        await GATE.passes(lease.session_id, TAKING.get())
        return await write_step(connection, lease, step)

    ownership.write_step = held


class HeldFiles(LocalFiles):
    async def append(self, session_id: str, *rest):
        await GATE.passes(session_id, "append:before")
        APPENDING.set(session_id)
        await super().append(session_id, *rest)
        await GATE.passes(session_id, "append:after")


def hold_half_written() -> None:
    write_all = descent._write_all

    def held(descriptor, data):
        if session := APPENDING.get():
            write_all(descriptor, data[: len(data) // 2])
            GATE.passes_in_thread(session, "append:half")
            data = data[len(data) // 2 :]
        write_all(descriptor, data)

    descent._write_all = held


class HeldProvider:
    """Of a main call the points are `model:...`, of a summarizer's `summary:...`."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def __getattr__(self, name: str):
        return getattr(self._provider, name)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        name = "model" if request.tools else "summary"
        await GATE.passes(request.user_id, f"{name}:before")
        begun = False
        async with aclosing(self._provider.stream(request)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    await GATE.passes(request.user_id, f"{name}:after")
                yield item
                if isinstance(item, Delta) and not begun:
                    begun = True
                    await GATE.passes(request.user_id, f"{name}:mid")


class Tracing:
    """Its effect is a line in the file of traces."""

    def __init__(self, name: str, safe: bool) -> None:
        self.definition = ToolDefinition(name, "Leaves a trace.", {"type": "object", "properties": {}})
        self.safe = safe

    async def run(self, request: ToolRequest) -> ToolResult:
        await GATE.passes(request.session_id, f"{request.name}:before")
        await asyncio.to_thread(self._leave, f"{request.session_id}/{request.tool_use_id}")
        await GATE.passes(request.session_id, f"{request.name}:after")
        return ToolResult(f"{request.name} is done")

    def _leave(self, line: str) -> None:
        with Path(os.environ["TRACE"]).open("a") as file:
            file.write(f"{line}\n")


def serve() -> None:
    settings = config.load()
    configure(settings.log_level, settings.log_format)
    GATE.arm(ANY, os.environ.get("HOLD"))
    GATE.listen()
    hold_while_taking()
    hold_half_written()
    main.PostgresRuns = HeldRuns
    main.PostgresSessions = HeldSessions
    main.make_files = lambda settings: HeldFiles(settings.data_dir / "files")
    tools = [Tracing("send", safe=False), Tracing("look", safe=True), Tracing("note", safe=False)]
    provider = HeldProvider(main.make_provider(settings))
    main.serve(main.create_app(settings, settings.database_url, provider, tools), settings)


if __name__ == "__main__":
    serve()
