"""The shapes that go out, for the OpenAPI page. Answers are plain JSON; tests check them against these."""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field

Item = TypeVar("Item")
Pair = Annotated[list[int], Field(min_length=2, max_length=2)]
RunStatusName = Literal["queued", "running", "waiting", "completed", "failed", "cancelled", "interrupted"]


class Page(BaseModel, Generic[Item]):
    data: list[Item]
    next: str | None = Field(description="Cursor for `after`; null on the last page.")


class UsageAnswer(BaseModel):
    """Tokens. `input` is the uncached part alone."""

    input: int
    cache_read: int
    cache_write: int
    output: int
    calls: int


class SessionAnswer(BaseModel):
    id: str
    title: str | None
    model: str
    system: list[dict[str, Any]]
    status: Literal["idle", "running", "waiting", "closed"]
    metadata: dict[str, Any]
    settings: dict[str, Any]
    created_at: str
    updated_at: str


class RepairAnswer(BaseModel):
    """`message`: index into the messages as they came."""

    message: int
    done: str


class CreatedSession(SessionAnswer):
    repairs: list[RepairAnswer] | None = Field(None, description="What `repair=true` changed in an import.")


class MessageAnswer(BaseModel):
    id: str
    seq: int
    run_id: str | None = Field(description="Null for a message that came with an import or a fork.")
    role: Literal["user", "assistant"]
    content: list[dict[str, Any]]
    stop_reason: str | None
    usage: UsageAnswer | None
    user_visible: bool
    agent_visible: bool
    created_at: str


class AwaitedCall(BaseModel):
    """A call that waits for its client's result, or for a person to allow it; `deadline`: then it gets an error."""

    tool_use_id: str
    name: str
    kind: Literal["approval", "result"]
    input: dict[str, Any]
    deadline: str | None


class RunAnswer(BaseModel):
    id: str
    session_id: str
    turn: int
    kind: Literal["turn", "compact", "base"]
    status: RunStatusName
    waiting_for: list[AwaitedCall]
    model: str
    stop_reason: str | None
    text: str | None = Field(description="Final text, once the run has ended.")
    usage: dict[str, UsageAnswer]
    error: dict[str, Any] | None
    trace_id: str | None = Field(description="Where the turn is traced, once its first step is stored.")
    created_at: str
    ended_at: str | None


class UsageTotals(BaseModel):
    by_purpose: dict[str, UsageAnswer]
    cache_read_ratio: float | None


class ContextAnswer(BaseModel):
    """Tokens; `fill` is of the working window."""

    last_input_tokens: int
    estimated_input_tokens: int
    compactions: int
    model: str
    max_input_tokens: int
    context_window_tokens: int
    trigger_tokens: int
    warm_tokens: int
    fill: float
    level: Literal["ok", "warm", "hot"]
    glyph: str
    breakdown: dict[str, int]
    epochs: int
    preset: str


class ShapedBlock(BaseModel):
    block: int
    record_ids: list[str]


class ViewMessage(BaseModel):
    """`seqs`: the rows that the message shows; none for the head."""

    role: Literal["user", "assistant"]
    content: list[dict[str, Any]]
    seqs: list[int]
    shaped: list[ShapedBlock]


class BreakpointAnswer(BaseModel):
    """`message` null: a block of the system."""

    message: int | None
    block: int


class ViewAnswer(BaseModel):
    """`breakpoints`: where the prompt cache is marked; none when the model has no such cache."""

    messages: list[ViewMessage]
    breakpoints: list[BreakpointAnswer]


class ShapingAnswer(BaseModel):
    """Blocks shown shortened: those of rows within `spans` (inclusive) but for `kept`, and `blocks`, when they have
    more than `limit` characters (arguments: bytes). A block is (seq, index)."""

    id: str
    tier: str
    shape: int
    limit: int
    spans: list[Pair]
    kept: list[Pair]
    blocks: list[Pair]


class PartAnswer(BaseModel):
    """Rows `from_seq` to `to_seq`, and the text in their place; empty: the tier's own marker."""

    from_seq: int
    to_seq: int
    text: str


class FoldAnswer(BaseModel):
    """Rows in the middle of the view in whose place one text each stands, but for `pinned_seqs`. `path` holds them in
    full. Tokens of the whole request."""

    id: str
    tier: str
    shape: int
    parts: list[PartAnswer]
    pinned_seqs: list[int]
    path: str
    evicted: int
    tokens_before: int
    tokens_after: int


class CutAnswer(BaseModel):
    """A summary or a truncation: rows below `kept_from_seq` left the view, but for `pinned_seqs`. `lines`: where
    they are in the file `path`; null when it could not be written. Tokens of the whole request."""

    id: str
    tier: str
    shape: int
    reason: str
    run_id: str
    turn: int
    kept_from_seq: int
    pinned_seqs: list[int]
    summarized_to_seq: int
    summary: str
    index: str
    path: str | None
    lines: Pair | None
    tokens_before: int
    tokens_after: int
    evicted: int
    model: str | None
    usage: UsageAnswer | None


class CompactionAnswer(BaseModel):
    """Tokens of the whole request before and after."""

    outcome: Literal[
        "compacted", "would_compact", "nothing_to_compact", "not_worth_it", "summary_failed", "offload_failed"
    ]
    tokens_before: int
    tokens_after: int
    messages_evicted: int
    evict_from_seq: int | None
    evict_to_seq: int | None
    record_id: str | None = None


class PutAway(BaseModel):
    """The record, and for a summary or truncation its reason."""

    record_id: str
    tier: str
    reason: str | None


class FileAnswer(BaseModel):
    """`put_away`: the records because of which the model is not shown this content whole."""

    path: str
    size: int | None
    modified_at: str | None
    put_away: list[PutAway]


class ModelAnswer(BaseModel):
    """Sizes in tokens, fractions of the working window."""

    model: str
    max_input_tokens: int
    max_output_tokens: int
    context_window_tokens: int
    trigger_frac: float
    keep_frac: float
    micro_frac: float | None
    summarizer_model: str | None
    prompt_caching: bool
    cache_min_tokens: int
    thinking_binding: bool


class Health(BaseModel):
    status: Literal["ok"]


class CheckAnswer(BaseModel):
    """`code` and `detail` of one that fails, as in a problem document."""

    name: str
    ok: bool
    code: str | None = None
    detail: str | None = None


class Ready(Health):
    checks: list[CheckAnswer]


class Problem(BaseModel):
    """RFC 9457; `code` is stable."""

    type: str
    title: str
    status: int
    detail: str
    code: str


_DOCUMENT = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": _DOCUMENT}
    for status, text in {
        400: "Malformed request",
        401: "No valid API key",
        403: "Not allowed",
        404: "No such resource",
        409: "Conflict: busy session or idempotency mismatch",
        413: "Body or input too large",
        422: "The payload does not fit its schema",
        429: "The tenant's share is used up; `Retry-After` tells when to ask again",
        503: "The store cannot be reached, or the server is stopping",
    }.items()
}
GONE: dict[int | str, dict[str, Any]] = {
    410: {"description": "Events that were asked for were pruned; `oldest_seq` is the first left", "content": _DOCUMENT}
}
