"""Payloads that come in. What is not named here is refused, so that a typing error is never silently ignored."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Metadata = dict[str, Any]
Blocks = Annotated[list[dict[str, Any]], Field(min_length=1)]
NonEmpty = Annotated[str, Field(min_length=1)]
ModelName = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\s\x00-\x1f]+$")]


class Payload(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class ContextOverrides(Payload):
    """Fractions of, and sizes in tokens of, this session's window."""

    max_input_tokens: int | None = None
    context_window_tokens: int | None = None
    trigger_frac: float | None = None
    keep_frac: float | None = None
    micro_frac: float | None = None
    max_view_messages: int | None = None
    tool_pair_summaries: bool | None = None
    compaction: bool | None = None
    summarizer_model: ModelName | None = None
    preset: str | None = None


class ImportedMessage(Payload):
    role: Literal["user", "assistant"]
    content: str | list[dict[str, Any]]


class SessionCreate(Payload):
    """`messages` imports a transcript in the provider's form."""

    system: str | Blocks | None = None
    model: ModelName | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    thinking: dict[str, Any] | None = None
    metadata: Metadata = Field(default_factory=dict)
    context: ContextOverrides | None = None
    messages: list[ImportedMessage] | None = None


class SessionPatch(Payload):
    """What is left out stays as it is."""

    title: Annotated[str, Field(max_length=500)] | None = None
    metadata: Metadata | None = None
    model: ModelName | None = None


class TurnCreate(Payload):
    content: NonEmpty | Blocks
    model: ModelName | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    metadata: Metadata = Field(default_factory=dict)


class CompactRequest(Payload):
    """`instructions`: what the summary should mind. `dry_run`: only say what would happen."""

    instructions: Annotated[str, Field(max_length=10_000)] | None = None
    dry_run: bool = False
