"""How middlewares compose: each is one async function `(request, call, call_next)`; the first is the outermost."""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol

from app.context.apply import apply
from app.context.blocks import media_count
from app.context.budget import Budget, clamp_max_tokens
from app.context.epoch import freed_by_summary
from app.context.estimate_cache import CachedEstimator, SizeCache
from app.context.fold import folded_rows
from app.context.head import render_head
from app.context.keeping import choose_tail
from app.context.ledger import with_epoch
from app.context.pins import choose_pins, open_request
from app.context.recheck import UNCHECKED, Checked
from app.context.shape import shape_rows
from app.conversation.messages import Content, StoredMessage
from app.conversation.model_profile import ModelProfile
from app.conversation.records import Cause, Cut, Epoch, Fold, Ledger, Memo, Shaping, Tier
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest, ToolDefinition
from app.conversation.usage import Usage
from app.ports import Capabilities, Clock, Estimator, FileBackend, IdSource, Provider, TranscriptStore

# Not a manual one: who asks by hand wants the summary, and when there is none the view stays as it was.
ELIDING = frozenset({Cause.THRESHOLD, Cause.OVERFLOW, Cause.TOOL, Cause.PREAMBLE, Cause.SHAPE})

Volatile = Callable[[str], Awaitable[Content]]
"""Reads the volatile system blocks (memory, date) of a session."""


async def nothing_volatile(session_id: str) -> Content:
    del session_id
    return ()


Skills = Callable[[], Awaitable[Content]]
"""Reads the block that lists the skills, as they are now."""


async def no_skills() -> Content:
    return ()


@dataclass(slots=True)
class Seen:
    """What the calls of one run need not look at again: messages found legal, and how many media a content has."""

    checked: Checked = UNCHECKED
    media: SizeCache[Content] = field(default_factory=lambda: SizeCache(media_count))


@dataclass(frozen=True, slots=True)
class Desk:
    """What tiers need of the outside. `summarizer`: profile of the model that summarizes.

    `argument_limit`: bytes of UTF-8 above which a string argument is shortened.
    """

    transcript: TranscriptStore
    files: FileBackend
    provider: Provider
    ids: IdSource
    clock: Clock
    estimator: Estimator
    sizes: CachedEstimator
    summarizer: ModelProfile
    argument_limit: int
    volatile: Volatile
    skills: Skills = no_skills
    seen: Seen = field(default_factory=Seen)


@dataclass(slots=True)
class Draft:
    """The epoch that the tiers of one call build. It is stored between the validator and the provider, or never.

    `cause` None: none begins, and only `births` (of rows that were never sent) may be recorded. `elisions` are dropped
    when a summary makes them needless. `usage`: what the summarizer spent. `declined`: (tier, reason) for the readers.
    `fitted`: the epoch stands whatever it frees, since without it the request does not fit. `stable`: how many of the
    system blocks that were read afresh stand before the volatile ones; None when the sent ones stay.
    """

    cause: Cause | None
    memo: Memo
    forced: Cause | None = None
    births: list[Shaping] = field(default_factory=list)
    elisions: list[Shaping | Fold] = field(default_factory=list)
    cut: Cut | None = None
    strip_thinking_to_seq: int = 0
    usage: Usage = field(default_factory=Usage)
    declined: list[tuple[Tier, str]] = field(default_factory=list)
    summary_failed: bool = False
    fitted: bool = False
    stable: int | None = None

    def epoch(self, epoch_id: str) -> Epoch:
        records = (*self.births, *self.elisions, *((self.cut,) if self.cut else ()))
        return Epoch(epoch_id, self.cause or Cause.BIRTH, records, None, self.strip_thinking_to_seq)


@dataclass(frozen=True, slots=True)
class Call:
    """What the middlewares of one model call read.

    `rows`: the committed rows that the stored ledger shows. `system` and `tools`: as they would be read afresh.
    `before` and `estimated`: measure and estimate (tokens) of the request before any tier, its preamble as it leaves.
    `automatic`: marks and births are on. `overflowed`: the window refused the attempt before; `bytes_only`: by the
    body's size. `ttl`: lifetime of the cache entries that it writes. `continues`: the newest row is an assistant one
    that a pause_turn left to be continued.
    """

    session_id: str
    run_id: str
    turn: int
    profile: ModelProfile
    capabilities: Capabilities
    budget: Budget
    system: Content
    tools: tuple[ToolDefinition, ...]
    rows: Sequence[StoredMessage]
    ledger: Ledger
    draft: Draft
    desk: Desk
    before: int
    estimated: int
    thinking: Mapping[str, Any] | None = None
    continues: bool = False
    automatic: bool = True
    instructions: str = ""
    overflowed: bool = False
    bytes_only: bool = False
    ttl: Literal["5m", "1h"] = "5m"

    @property
    def fresh(self) -> bool:
        """The preamble is read afresh: an epoch begins, or nothing was ever sent."""
        return self.draft.cause is not None or self.ledger.preamble is None

    @property
    def elides(self) -> bool:
        """Cheap tiers act on what is older than the kept tail: the prefix changes anyway."""
        return self.draft.cause in ELIDING

    @property
    def must_fit(self) -> bool:
        """What leaves is made to fit. A compaction by hand sends nothing; where the marks are off an overflow comes
        first."""
        forced = self.draft.forced
        return (self.automatic or forced is not None) and forced is not Cause.MANUAL

    def drafted(self) -> Ledger:
        """The ledger as it would be with the draft."""
        return with_epoch(self.ledger, self.draft.epoch("draft"), self.run_id)

    def unelided(self) -> list[StoredMessage]:
        """The rows of the view as they were before the cheap tiers."""
        return replace(self, draft=replace(self.draft, elisions=[])).shown()

    def shown(self) -> list[StoredMessage]:
        """The rows of the view, shortened as the draft has them."""
        ledger = self.drafted()
        pinned = frozenset(ledger.pinned_seqs)
        rows = [row for row in self.rows if row.seq >= ledger.kept_from_seq or row.seq in pinned]
        return folded_rows(ledger, shape_rows(rows, ledger.shapings, self.session_id), self.session_id)

    def sizes(self, rows: Sequence[StoredMessage]) -> dict[int, int]:
        """Tokens by seq, on the scale of the measure."""
        return {row.seq: self.scaled(self.desk.sizes.blocks(row.content)) for row in rows}

    def scaled(self, estimate: int) -> int:
        """An estimate on the scale of the measure: what this very request measured against what it was estimated at."""
        return round(estimate * self.before / max(1, self.estimated))

    def unscaled(self, tokens: int) -> int:
        return math.ceil(tokens * self.estimated / max(1, self.before))

    def estimate(self, text: str) -> int:
        return self.desk.estimator.estimate(text)

    def frozen(self, request: ModelRequest) -> ModelRequest:
        """The request with the preamble that was sent before: no epoch begins after all."""
        preamble = self.ledger.preamble
        return replace(request, system=preamble.system, tools=preamble.tools) if preamble else request

    def tail(self, rows: Sequence[StoredMessage]) -> int | None:
        """Where the kept tail begins; None when nothing lies before it."""
        return choose_tail(rows, self.sizes(rows), self.profile, self.budget.keep, self.drafted().kept_from_seq)

    def pins(self, cut: int) -> tuple[int, ...]:
        """What stays of the rows below `cut`; a repair keeps nothing but the request itself."""
        rows = self.shown()
        if self.draft.cause is Cause.REPAIR:
            request = open_request(rows)
            return (request,) if request is not None and request < cut else ()
        return choose_pins(rows, cut, self.sizes(rows), self.budget.window, self.ledger.pinned_seqs)

    def after_summary(self, cut: int) -> int:
        """The measure after a summary of the rows below `cut`, the head before included, as long as it may be."""
        pinned, head = self.pins(cut), render_head(self.ledger, self.session_id)
        leaving = {seq: size for seq, size in self.sizes(self.unelided()).items() if seq not in pinned}
        freed = freed_by_summary(leaving, cut, self.budget.summary_cap)
        return self.before - freed - (self.scaled(self.desk.sizes.message(head)) if head else 0)

    def render(self, request: ModelRequest) -> ModelRequest:
        """The request with the view as the draft shows it."""
        messages = apply(self.drafted(), self.rows, self.session_id, self.continues)
        return replace(request, messages=messages)

    def tokens(self, request: ModelRequest) -> int:
        """The measure of the request as the draft has it now."""
        return self.scaled(self.desk.sizes.request(request))

    def repeats(self, request: ModelRequest) -> bool:
        """What the window refused is about to be sent again: no tier changed it, and the answer is not made smaller."""
        draft, budget = self.draft, self.budget
        if not self.overflowed or draft.cut or draft.elisions or draft.births:
            return False
        return self.bytes_only or clamp_max_tokens(budget, self.tokens(request)) in (budget.max_tokens, budget.floor)

    def decline(self, tier: Tier, reason: str) -> None:
        self.draft.declined.append((tier, reason))


Handler = Callable[[ModelRequest, Call], Awaitable[Reply]]


class Middleware(Protocol):
    async def __call__(self, request: ModelRequest, call: Call, call_next: Handler) -> Reply: ...


def compose(middlewares: Iterable[Middleware], send: Handler) -> Handler:
    """The chain as one handler that ends in `send`."""
    handler = send
    for middleware in reversed(tuple(middlewares)):
        handler = partial(middleware, call_next=handler)
    return handler
