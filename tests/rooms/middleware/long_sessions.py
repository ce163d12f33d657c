"""Whole turns of long sessions: a model of one window, that refuses what does not fit and counts as the estimator does.

Every request and every summary of it can be looked at; texts are prose, so that tokens follow from their length.
"""

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from app.agent.pairing import TASK
from app.agent.turn import ContextSettings
from app.context.archive import read_tail
from app.context.estimate import HeuristicEstimator
from app.context.estimate_cache import CachedEstimator
from app.conversation.events import EventType
from app.conversation.messages import Content, Message, text_of
from app.conversation.model_profile import ModelProfile
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.run import Run, RunStatus, Step
from app.conversation.session import Session
from app.conversation.tools import ToolRequest
from app.conversation.usage import Purpose, Usage
from app.errors import FileMissing, ProviderFailure
from app.providers.scripted import Choice, calls, say, use
from app.providers.scripted import Step as Scripted
from app.turns.service import Turns
from tests.twins import CONTEXT, LEASE_S, PROCESSES, FakeTool, Works

ESTIMATOR = HeuristicEstimator()
SIZES = CachedEstimator(ESTIMATOR)
WORD = "lorem "
CHARS_PER_TOKEN = 2.5

OPENED: list["LongSession"] = []


def prose(tokens: float, tag: str = "") -> str:
    """About so many tokens of text, by the estimator in use."""
    chars = int(tokens * CHARS_PER_TOKEN)
    return (tag + " " + WORD * (chars // len(WORD) + 1))[:chars].strip()


def read_all(*sizes: int) -> Reply:
    """One batch of calls, each for a result of so many tokens."""
    return calls(*(use("read", {"tokens": size}) for size in sizes))


def summary(request: ModelRequest) -> Reply:
    return say("# Conversation summary\n\n## Goal\n\nWork goes on.\n\n" + prose(150))


def pair_lines(request: ModelRequest) -> Reply:
    count = text_of(request.messages[0].content).count("<batch number=")
    return say("\n".join(f"{number}: read something, fine" for number in range(1, count + 1)))


async def prepared(request) -> str:
    """A tool that takes as long as the summaries do."""
    tasks = {task for task in asyncio.all_tasks() if task.get_name() == TASK}
    if tasks:
        await asyncio.wait(tasks)
    return "fine"


def tokens(request: ModelRequest) -> int:
    return ESTIMATOR.estimate_request(request)


class LongSession(Works):
    """One session on a server in memory. `script`: the main calls' answers; `summaries`: the summarizer's; after
    them come good ones without end. `fields`: of the model's profile."""

    def __init__(
        self,
        *script: Scripted | Choice,
        window: int = 20_000,
        summaries: Iterable[Scripted | Choice] = (),
        settings: ContextSettings = CONTEXT,
        tools: Sequence[FakeTool] = (),
        **fields: Any,
    ) -> None:
        read = FakeTool("read", self._read)
        super().__init__(*[self._answer] * 3000, tools=[read, *tools])
        self.bench = replace(self.bench, settings=settings)
        self.profile = replace(ModelProfile("double-1", window, max_output_tokens=4096), **fields)
        self.script = list(script)
        self.summaries = list(summaries)
        self.pair_answers: list[Scripted | Choice] = []
        self.results: list[str] = []
        self.turns = self._turns()
        self.session: Session
        self.written: list[str] = []
        self.runs.after = self._remember
        OPENED.append(self)

    async def _remember(self, step: Step) -> None:
        """What each step has appended, and what the start of its run had before it."""
        if hasattr(self, "session"):
            new = await self.transcript.page(self.session.id, len(self.written), 1000)
            self.written += [as_stored(row.content) for row in new]

    async def transcript_is_as_written(self) -> bool:
        """Byte for byte what was appended, in that order: nothing else ever touched it."""
        return [as_stored(row.content) for row in await self.rows(self.session)] == self.written

    def _turns(self) -> Turns:
        turns = Turns(
            self.bench, self.runs, self.events, ESTIMATOR, lambda session, model: self.profile, "one", LEASE_S
        )
        PROCESSES.append(turns)
        return turns

    def rebuild(self, **changes: Any) -> None:
        """Another process, with another workbench."""
        self.bench = replace(self.bench, **changes)
        self.turns = self._turns()

    async def _read(self, request: ToolRequest) -> str:
        text = prose(int(request.arguments["tokens"]), f"result {request.tool_use_id}:")
        self.results.append(text)
        return text

    def _answer(self, request: ModelRequest) -> Scripted:
        if tokens(request) > self.profile.max_input_tokens:
            detail = f"prompt is too long: {tokens(request)} tokens > {self.profile.max_input_tokens} maximum"
            return ProviderFailure("context_overflow", detail, transient=False, status=400)
        step = self._next(request)
        step = step(request) if callable(step) else step
        return replace(step, usage=spent(request, step)) if isinstance(step, Reply) else step

    def _next(self, request: ModelRequest) -> Scripted | Choice:
        if request.purpose is Purpose.MAIN:
            return self.script.pop(0) if self.script else say("done")
        if request.purpose is Purpose.PAIR_SUMMARY:
            return self.pair_answers.pop(0) if self.pair_answers else pair_lines
        return self.summaries.pop(0) if self.summaries else summary

    async def say(self, text: str = "go", *script: Scripted | Choice) -> Run:
        """A turn, to its end; the session is opened by the first one."""
        if not hasattr(self, "session"):
            self.session = await self.open("double-1")
        self.script += script
        return await self.turn(self.turns, self.session, text)

    async def grow(self, *sizes: int, text: str = "go on") -> Run:
        """A turn of one call after another, each with a result of so many tokens."""
        run = await self.say(text, *map(read_all, sizes), say("so far"))
        assert run.status is RunStatus.COMPLETED, run.error
        return run

    async def chat(self, *sizes: int) -> Run:
        """Turns of words alone, each answered with so many tokens: nothing that a cheap tier could shorten."""
        for number, size in enumerate(sizes):
            run = await self.say(f"question {number}", say(prose(size, f"answer {number}:")))
            assert run.status is RunStatus.COMPLETED, run.error
        return run

    @property
    def mains(self) -> list[ModelRequest]:
        return [request for request in self.provider.requests if request.purpose is Purpose.MAIN]

    @property
    def sums(self) -> list[ModelRequest]:
        return [request for request in self.provider.requests if request.purpose is Purpose.SUMMARIZE]

    @property
    def pair_calls(self) -> list[ModelRequest]:
        return [request for request in self.provider.requests if request.purpose is Purpose.PAIR_SUMMARY]

    @property
    def last(self) -> ModelRequest:
        return self.mains[-1]

    async def told(self, kind: EventType) -> list[dict[str, Any]]:
        return [dict(event.data) for event in await self.log(self.session) if event.type is kind]

    async def stored(self) -> Session:
        return await self.sessions.get("t", self.session.id)

    async def file(self) -> str:
        try:
            return (await self.files.read(self.session.id, self.path)).decode()
        except FileMissing:
            return ""

    @property
    def path(self) -> str:
        return f"/conversation_history/{self.session.id}.md"

    async def archived(self) -> list[int]:
        """The seqs that the offload file holds, in its order."""
        sections = read_tail((await self.file()).encode()).sections
        return [seq for section in sections for seq in range(section.first_seq, section.last_seq + 1)]

    @property
    def epochs(self) -> list[dict[str, Any]]:
        """As their steps stored them, oldest first."""
        found = {}
        for step in self.runs.steps:
            for epoch in ((step.state or {}).get("private") or {}).get("epochs", ()):
                found.setdefault(epoch["id"], epoch)
        return list(found.values())

    @property
    def causes(self) -> list[str]:
        return [epoch["cause"] for epoch in self.epochs]

    @property
    def records(self) -> list[dict[str, Any]]:
        return [record for epoch in self.epochs for record in epoch["records"]]

    @property
    def cuts(self) -> list[dict[str, Any]]:
        return [record for record in self.records if record["kind"] == "cut"]

    @property
    def tiers(self) -> list[str]:
        return [record["tier"] for record in self.records]


def spent(request: ModelRequest, reply: Reply) -> Usage:
    """Usage of a model that counts as the estimator does: the measure then is the estimate, whatever came before."""
    named = tuple({"id": "toolu_1", **block} for block in reply.content)
    return Usage(input=tokens(request), output=SIZES.message(Message("assistant", named)), calls=1)


def as_stored(content: Content) -> str:
    return json.dumps(content, ensure_ascii=False)


def head_of(request: ModelRequest) -> str:
    """The text of the view head; empty without one."""
    text = text_of(request.messages[0].content)
    return text if text.startswith("<conversation_record") else ""


def shown(request: ModelRequest) -> str:
    return repr([message.content for message in request.messages])
