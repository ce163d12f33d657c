"""Asks a model for the summary: in as many calls as its window needs, each answer checked before it counts."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.aside import ask_aside
from app.context.overflow import classify
from app.context.summary_check import rejection
from app.context.summary_input import Chunk, Estimate, plan_chunks
from app.context.summary_prompt import system_text, user_text
from app.conversation.messages import Message, StoredMessage, text_block, text_of
from app.conversation.model_profile import ModelProfile
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.usage import Purpose, Usage
from app.errors import ProviderFailure
from app.ports import Provider

log = logging.getLogger(__name__)

MAX_CALLS = 5
# Estimates may be low by this much before the provider refuses a chunk.
MARGIN = 0.05
# A chunk below this many tokens is not refused for its length.
SMALLEST_CHUNK = 256

DeclinedReason = Literal["summary_rejected", "summary_failed"]
"""As `context.declined` names it."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be condensed. `profile`: the summarizer's. `rows`: all since `previous` ended, oldest first.

    Tokens, by the estimate in use: `cap` of a summary, `replaces` of all that the summary takes the place of.
    """

    session_id: str
    profile: ModelProfile
    rows: Sequence[StoredMessage]
    previous: str
    cap: int
    replaces: int
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """`left_out`: first and last seq of rows that were not read."""

    text: str
    attempts: int
    left_out: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Refused:
    """No summary, and why."""

    reason: DeclinedReason
    attempts: int


async def summarize(provider: Provider, job: Job, estimate: Estimate, spent: list[Usage]) -> Summary | Refused:
    """At most MAX_CALLS calls, one retry among them. `estimate`: tokens of a text for the summarizer's window.

    `spent` gets the usage of each attempt that reported some, also of one that is cancelled.
    """
    return await _Work(provider, job, estimate, spent).run()


@dataclass(slots=True)
class _Work:
    """One summarization under way: `text` is the summary so far, `queue` what it does not cover yet, `capacity` the
    most tokens of a chunk."""

    provider: Provider
    job: Job
    estimate: Estimate
    spent: list[Usage]
    text: str = ""
    capacity: int = 0
    queue: list[Chunk] = field(default_factory=list)
    left_out: tuple[int, int] | None = None
    attempts: int = 0
    retried: bool = False
    objection: str | None = None

    async def run(self) -> Summary | Refused:
        self.text, self.capacity = self.job.previous, self._capacity()
        await self._plan(self.job.rows)
        if not self.queue:
            return self._refused("summary_failed")
        while self.queue:
            if refused := await self._next():
                return refused
        return Summary(self.text, self.attempts, self.left_out)

    async def _next(self) -> Refused | None:
        """One call; None when there is reason to go on."""
        chunk = self.queue[0]
        try:
            reply = await self._ask(chunk)
        except ProviderFailure as failure:
            log.warning("a summarizer call failed", extra={"session": self.job.session_id, "code": failure.code})
            if failure.code == "context_overflow":
                return await self._halve(chunk)
            return await self._retry(chunk, "summary_failed", None)
        if classify(None, "", reply.stop_reason):
            return await self._halve(chunk)
        if objection := rejection(reply, self.cap, self.job.replaces, self.estimate):
            log.warning("a summary was rejected", extra={"session": self.job.session_id, "reason": objection})
            return await self._retry(chunk, "summary_rejected", objection)
        self.text, self.objection = text_of(reply.content).strip(), None
        del self.queue[0]
        return None

    async def _retry(self, chunk: Chunk, reason: DeclinedReason, objection: str | None) -> Refused | None:
        if self.retried or self.attempts >= MAX_CALLS:
            return self._refused(reason)
        self.retried, self.objection = True, objection
        if len(self.queue) > MAX_CALLS - self.attempts:
            await self._plan(self._rows_from(chunk))
        return None

    async def _halve(self, chunk: Chunk) -> Refused | None:
        """The provider counts more than we estimate, so everything that is left goes in smaller chunks."""
        if self.attempts >= MAX_CALLS or chunk.tokens < 2 * SMALLEST_CHUNK:
            return self._refused("summary_failed")
        self.capacity = chunk.tokens // 2
        await self._plan(self._rows_from(chunk))
        return None

    async def _plan(self, rows: Sequence[StoredMessage]) -> None:
        calls_left = MAX_CALLS - self.attempts
        plan = await asyncio.to_thread(plan_chunks, rows, self.capacity, calls_left, self.estimate)
        self.queue = list(plan.chunks)
        if plan.left_out:
            self.left_out = (min(plan.left_out[0], *(self.left_out or plan.left_out)), plan.left_out[1])

    def _rows_from(self, chunk: Chunk) -> Sequence[StoredMessage]:
        return [row for row in self.job.rows if row.seq >= chunk.from_seq]

    def _refused(self, reason: DeclinedReason) -> Refused:
        return Refused(reason, self.attempts)

    @property
    def cap(self) -> int:
        """A small summarizer must have room for what it reads besides the summary so far and the new one."""
        return min(self.job.cap, self.job.profile.working_window // 10)

    @property
    def max_tokens(self) -> int:
        """Above the cap, since a complete answer somewhat over it may still do."""
        return min(self.job.profile.max_output_tokens, self.cap * 3 // 2)

    def _capacity(self) -> int:
        """Tokens of a chunk: what the prompt, the summary so far and the answer leave of the window."""
        before = max(self.estimate(self.job.previous), self.cap)
        frame = self.estimate(system_text(self.cap)) + self.estimate(user_text("", "", self.job.instructions, None))
        window = int(self.job.profile.working_window * (1 - MARGIN))
        return max(SMALLEST_CHUNK, window - frame - before - self.max_tokens)

    async def _ask(self, chunk: Chunk) -> Reply:
        self.attempts += 1
        return await ask_aside(self.provider, self._request(chunk), self.spent)

    def _request(self, chunk: Chunk) -> ModelRequest:
        text = user_text(self.text, chunk.text, self.job.instructions, self.objection)
        return ModelRequest(
            model=self.job.profile.model,
            max_tokens=self.max_tokens,
            user_id=self.job.session_id,
            system=(text_block(system_text(self.cap)),),
            messages=(Message("user", (text_block(text),)),),
            purpose=Purpose.SUMMARIZE,
        )
