"""Records: stored, immutable decisions that shape the view. They point at stored seqs and block indexes, never at
positions in a view, and hold all they need to render the same bytes for ever."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from app.conversation.messages import Content
from app.conversation.request import ToolDefinition
from app.conversation.usage import Usage

# The wording of heads, placeholders and previews. A record renders with the version it was made under; a new version
# begins with an epoch.
SHAPE_VERSION = 1


class Tier(StrEnum):
    RESULT_OFFLOAD = "result_offload"
    ARGUMENT_TRUNCATION = "argument_truncation"
    MICRO_COMPACTION = "micro_compaction"
    MESSAGE_CAP = "message_cap"
    TOOL_PAIR_SUMMARY = "tool_pair_summary"
    SUMMARIZATION = "summarization"
    FIT = "fit"
    MEDIA_SHEDDING = "media_shedding"
    MECHANICAL_TRUNCATION = "mechanical_truncation"


class Reason(StrEnum):
    THRESHOLD = "threshold"
    OVERFLOW = "overflow"
    TOOL = "tool"
    MANUAL = "manual"
    TRUNCATE = "truncate"
    REPAIR = "repair"


class Cause(StrEnum):
    """Why an epoch begins. FIRST opens a ledger; BIRTH shapes only rows that were never sent: neither counts."""

    FIRST = "first"
    BIRTH = "birth"
    THRESHOLD = "threshold"
    MICRO = "micro"
    OVERFLOW = "overflow"
    TOOL = "tool"
    MANUAL = "manual"
    TRUNCATE = "truncate"
    REPAIR = "repair"
    PREAMBLE = "preamble"
    SHAPE = "shape"
    CAP = "cap"


UNCOUNTED = frozenset({Cause.FIRST, Cause.BIRTH})

Block = tuple[int, int]
"""(seq of the row, index of the block in its content)."""


@dataclass(frozen=True, slots=True)
class Shaping:
    """Blocks that are shown shortened, of one tier and epoch.

    A block is shaped when its row's seq lies in one of `spans` (inclusive) and it is not in `kept`, or when it is in
    `blocks`; and, in either case, when the text in question has more than `limit` (characters for results and user
    texts, UTF-8 bytes for arguments).
    """

    id: str
    tier: Tier
    shape: int
    limit: int
    spans: tuple[tuple[int, int], ...] = ()
    kept: tuple[Block, ...] = ()
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """A summary or a mechanical truncation: rows below `kept_from_seq` leave the view, but for `pinned_seqs`.

    `summarized_to_seq`: the last seq that `summary` covers (it may lie below `kept_from_seq` - 1 after a truncation;
    0 when there is no summary). `path`, `lines`: where the evicted text is; None when it could not be written.
    `tokens_*`: measures of the whole request. `evicted`: rows that left the view by this record.
    """

    id: str
    tier: Tier
    shape: int
    reason: Reason
    run_id: str
    turn: int
    kept_from_seq: int
    pinned_seqs: tuple[int, ...]
    summarized_to_seq: int = 0
    summary: str = ""
    index: str = ""
    path: str | None = None
    lines: tuple[int, int] | None = None
    tokens_before: int = 0
    tokens_after: int = 0
    evicted: int = 0
    model: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Rows `from_seq` to `to_seq` (inclusive), and the text in their place; empty: the tier's own words."""

    from_seq: int
    to_seq: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Whole rows in the middle of the view for which one text each stands, of one tier and epoch.

    `parts`: oldest first; rows of `pinned_seqs` among them stay. `path`: where the rows are in full. `evicted`: how
    many left the view. `tokens_*`: measures of the whole request.
    """

    id: str
    tier: Tier
    shape: int
    parts: tuple[Part, ...]
    pinned_seqs: tuple[int, ...]
    path: str
    evicted: int
    tokens_before: int = 0
    tokens_after: int = 0


Record = Shaping | Cut | Fold


@dataclass(frozen=True, slots=True)
class Preamble:
    """All that stands before the messages, as it was sent. `stable`: how many system blocks stand before the
    volatile ones. `key` identifies what the user can change of it: model, system, tools."""

    key: str
    system: Content
    stable: int
    tools: tuple[ToolDefinition, ...]


@dataclass(frozen=True, slots=True)
class Epoch:
    """What all tiers of one model call decided, written in one statement.

    `strip_thinking_to_seq`: thinking of rows up to here is left out; it only grows.
    """

    id: str
    cause: Cause
    records: tuple[Record, ...] = ()
    preamble: Preamble | None = None
    strip_thinking_to_seq: int = 0


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last accepted request: its real total (input + output, tokens), its last row, and its estimate."""

    tokens: int
    to_seq: int
    estimated: int


@dataclass(frozen=True, slots=True)
class Memo:
    """Small numbers that go from run to run beside the records.

    `ratio`: real tokens per estimated one. `epochs`: how many were counted. `declined_at`: measure of the last declined
    check, 0 for none: the next comes after 5 % growth. `failures`: summaries that failed in a row;
    `no_summary_before_turn`: back-off. `learned_window`: what an overflow named. `last_call_at`: Unix time in seconds;
    `long_pauses`: the session has paused over 4 minutes between calls, so its cache entries should live longer.
    `announced`: digest of the volatile blocks that the model was last told of. `guessed_window`: from overflows that
    named none; it counts for a model that no table names only.
    """

    anchor: Anchor | None = None
    ratio: float = 1.0
    epochs: int = 0
    declined_at: int = 0
    failures: int = 0
    no_summary_before_turn: int = 0
    learned_window: int | None = None
    last_call_at: float = 0.0
    long_pauses: bool = False
    announced: str = ""
    guessed_window: int | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """One line about a whole batch, prepared in the background: rows `from_seq` to `to_seq`, `digest` of what was read
    of them."""

    from_seq: int
    to_seq: int
    digest: str
    text: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """The active records of a session, merged: what `apply` needs, and nothing of the runs they came from.

    `summary`: the newest one. `cut`: the newest Cut, which says where the view begins (the summary itself, or a
    truncation after it). `shapings`, `folds`: oldest first. `sources`: (run id, epoch id) of each epoch that is still
    active. `force`: a compaction asked for by the tool, cleared by the next model call whatever its outcome. `pairs`:
    summaries of old batches that the next epoch may show. `written`: how often it was changed and stored.
    """

    shapings: tuple[Shaping, ...] = ()
    folds: tuple[Fold, ...] = ()
    summary: Cut | None = None
    cut: Cut | None = None
    preamble: Preamble | None = None
    strip_thinking_to_seq: int = 0
    shape: int = SHAPE_VERSION
    memo: Memo = field(default_factory=Memo)
    sources: tuple[tuple[str, str], ...] = ()
    force: Mapping[str, Any] | None = None
    pairs: tuple[Pair, ...] = ()
    written: int = 0

    @property
    def kept_from_seq(self) -> int:
        return self.cut.kept_from_seq if self.cut else 1

    @property
    def unsummarized_from(self) -> int:
        """The first seq that no summary covers."""
        return self.summary.summarized_to_seq + 1 if self.summary else 1

    @property
    def pinned_seqs(self) -> tuple[int, ...]:
        return self.cut.pinned_seqs if self.cut else ()
