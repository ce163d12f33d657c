"""Payloads that come in. What is not named here is refused, so that a typing error is never silently ignored."""

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from app.turns.commands import MAX_INSTRUCTIONS

MAX_METADATA_BYTES = 65_536
MAX_BLOCKS = 10_000
MAX_MESSAGES = 100_000
MAX_FIELDS = 64  # of one object; no payload knows as many


def _limited(limit: int, things: str) -> BeforeValidator:
    """Refuses a longer list before anything looks into it."""
    return BeforeValidator(_refusing(lambda value: isinstance(value, list) and len(value) > limit, limit, things))


def _refusing(exceeds: Callable[[Any], bool], limit: int, things: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if exceeds(value):
            raise ValueError(f"must have at most {limit} {things}")
        return value

    return check


def _is_large(value: Any) -> bool:
    return len(json.dumps(value, ensure_ascii=False).encode()) > MAX_METADATA_BYTES


Metadata = Annotated[dict[str, Any], BeforeValidator(_refusing(_is_large, MAX_METADATA_BYTES, "bytes as JSON"))]
Blocks = Annotated[list[dict[str, Any]], Field(min_length=1, fail_fast=True)]
AnyBlocks = Annotated[list[dict[str, Any]], Field(fail_fast=True)]
FewBlocks = _limited(MAX_BLOCKS, "blocks")
NonEmpty = Annotated[str, Field(min_length=1)]
ModelName = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\s\x00-\x1f]+$")]


_few_fields = _refusing(lambda value: isinstance(value, dict) and len(value) > MAX_FIELDS, MAX_FIELDS, "fields")


class Payload(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        return _few_fields(value)


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
    content: Annotated[str | AnyBlocks, FewBlocks]


Imported = Annotated[list[ImportedMessage], Field(fail_fast=True)]


class SessionCreate(Payload):
    """`messages` imports a transcript in the provider's form."""

    system: Annotated[str | Blocks | None, FewBlocks] = None
    model: ModelName | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    thinking: dict[str, Any] | None = None
    metadata: Metadata = Field(default_factory=dict)
    context: ContextOverrides | None = None
    messages: Annotated[Imported | None, _limited(MAX_MESSAGES, "messages")] = None


class SessionPatch(Payload):
    """What is left out stays as it is."""

    title: Annotated[str, Field(max_length=500)] | None = None
    metadata: Metadata | None = None
    model: ModelName | None = None


class TurnCreate(Payload):
    content: Annotated[NonEmpty | Blocks, FewBlocks]
    model: ModelName | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    metadata: Metadata = Field(default_factory=dict)


class CompactRequest(Payload):
    """`instructions`: what the summary should mind. `dry_run`: only say what would happen."""

    instructions: Annotated[str, Field(max_length=MAX_INSTRUCTIONS)] | None = None
    dry_run: bool = False
