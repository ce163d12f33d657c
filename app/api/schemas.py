"""Payloads that come in. What is not named here is refused, so that a typing error is never silently ignored."""

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from app.api.block_schemas import (
    INPUT_BLOCKS,
    INPUT_SCHEMA,
    NOT_BLANK,
    RESULT_BLOCKS,
    SYSTEM_BLOCKS,
    THINKING,
    TRANSCRIPT_BLOCKS,
    WHITE,
)
from app.conversation.model_profile import MIN_VIEW_CAP, MIN_WINDOW
from app.conversation.presets import PRESETS
from app.conversation.tool_allow import MAX_URL
from app.conversation.tool_servers import MAX_NAME, NAME
from app.sessions.client_tools import MAX_APPROVALS, MAX_DESCRIPTION_CHARS, MAX_TOOLS, TOOL_NAME
from app.sessions.tool_servers import MAX_SERVERS
from app.turns.answers import MAX_ANSWERS, MAX_MESSAGE_CHARS
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
_Blocks = Annotated[list[dict[str, Any]], Field(min_length=1, fail_fast=True)]
SystemBlocks = Annotated[_Blocks, WithJsonSchema(SYSTEM_BLOCKS)]
InputBlocks = Annotated[_Blocks, WithJsonSchema(INPUT_BLOCKS)]
TranscriptBlocks = Annotated[list[dict[str, Any]], Field(fail_fast=True), WithJsonSchema(TRANSCRIPT_BLOCKS)]
ResultBlocks = Annotated[list[dict[str, Any]], Field(fail_fast=True), WithJsonSchema(RESULT_BLOCKS)]
CallId = Annotated[str, Field(min_length=1, max_length=64)]
FewBlocks = _limited(MAX_BLOCKS, "blocks")
NonEmpty = Annotated[str, Field(min_length=1, json_schema_extra={"pattern": NOT_BLANK})]


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 5.0 is a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _whole_budget(value: Any) -> Any:
    has_one = isinstance(value, dict) and "budget_tokens" in value
    return {**value, "budget_tokens": _whole(value["budget_tokens"])} if has_one else value


Whole = Annotated[int, BeforeValidator(_whole)]
Tokens = Annotated[int, Field(ge=1), BeforeValidator(_whole)]
Thinking = Annotated[dict[str, Any], BeforeValidator(_whole_budget), WithJsonSchema(THINKING)]
Size = Annotated[Whole, Field(json_schema_extra={"minimum": MIN_WINDOW})]
ViewCap = Annotated[Whole, Field(json_schema_extra={"anyOf": [{"enum": [0]}, {"minimum": MIN_VIEW_CAP}]})]
Fraction = Annotated[float, Field(json_schema_extra={"exclusiveMinimum": 0, "exclusiveMaximum": 1})]
Preset = Annotated[str, Field(json_schema_extra={"enum": sorted(PRESETS)})]
ModelName = Annotated[str, Field(min_length=1, max_length=128, pattern=rf"^[^{WHITE}\x00-\x1f]+$")]


_few_fields = _refusing(lambda value: isinstance(value, dict) and len(value) > MAX_FIELDS, MAX_FIELDS, "fields")


class Payload(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        return _few_fields(value)


class ContextOverrides(Payload):
    """Fractions of, and sizes in tokens of, this session's window: context_window_tokens <= max_input_tokens, and
    keep_frac < micro_frac <= trigger_frac."""

    max_input_tokens: Size | None = None
    context_window_tokens: Size | None = None
    trigger_frac: Fraction | None = None
    keep_frac: Fraction | None = None
    micro_frac: Fraction | None = None
    max_view_messages: ViewCap | None = None
    tool_pair_summaries: bool | None = None
    compaction: bool | None = None
    summarizer_model: ModelName | None = None
    preset: Preset | None = None


class McpServer(Payload):
    """`url`: of an MCP server over streamable HTTP, on a host that the server allows. `headers` are never shown."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME, pattern=NAME)]
    url: Annotated[str, Field(min_length=1, max_length=MAX_URL)]
    headers: dict[str, str] | None = None
    allowed_tools: (
        Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=1000)] | None
    ) = None


class ClientTool(Payload):
    """A tool that the client answers."""

    name: Annotated[str, Field(pattern=TOOL_NAME)]
    description: Annotated[NonEmpty, Field(max_length=MAX_DESCRIPTION_CHARS)]
    input_schema: Annotated[dict[str, Any], WithJsonSchema(INPUT_SCHEMA)]


ApprovalMode = Literal["always", "never", "unsafe"]


class Approvals(Payload):
    """Which calls wait for a person before they run: `unsafe` ones are those of tools that may not be repeated."""

    default: ApprovalMode | None = None
    tools: Annotated[dict[str, ApprovalMode], Field(max_length=MAX_APPROVALS)] | None = None


class ImportedMessage(Payload):
    role: Literal["user", "assistant"]
    content: Annotated[str | TranscriptBlocks, FewBlocks]


Imported = Annotated[list[ImportedMessage], Field(fail_fast=True)]


class SessionCreate(Payload):
    """`messages` imports a transcript in the provider's form."""

    system: Annotated[str | SystemBlocks | None, FewBlocks] = None
    model: ModelName | None = None
    max_tokens: Tokens | None = None
    thinking: Thinking | None = None
    metadata: Metadata = Field(default_factory=dict)
    context: ContextOverrides | None = None
    mcp_servers: Annotated[list[McpServer], Field(max_length=MAX_SERVERS)] | None = None
    tools: Annotated[list[ClientTool] | None, _limited(MAX_TOOLS, "tools")] = None
    approvals: Approvals | None = None
    messages: Annotated[Imported | None, _limited(MAX_MESSAGES, "messages")] = None


class ForkRequest(Payload):
    """`at_seq`: the last message that may go along; without it all that are there."""

    at_seq: Annotated[int, Field(ge=1, le=2**31 - 1), BeforeValidator(_whole)] | None = None


class SessionPatch(Payload):
    """What is left out stays as it is."""

    title: Annotated[str, Field(max_length=500)] | None = None
    metadata: Metadata | None = None
    model: ModelName | None = None


class TurnCreate(Payload):
    content: Annotated[NonEmpty | InputBlocks, FewBlocks]
    model: ModelName | None = None
    max_tokens: Tokens | None = None
    metadata: Metadata = Field(default_factory=dict)


class ToolResultGiven(Payload):
    tool_use_id: CallId
    content: Annotated[str | ResultBlocks, FewBlocks]
    is_error: bool = False


class ToolResults(Payload):
    """Results of calls of the client's own tools."""

    results: Annotated[list[ToolResultGiven], Field(min_length=1), _limited(MAX_ANSWERS, "results")]


class ApprovalGiven(Payload):
    """`message`: told to the model when the call is denied. `for_session`: later calls of the tool ask nobody."""

    tool_use_id: CallId
    decision: Literal["allow", "deny"]
    message: Annotated[str, Field(max_length=MAX_MESSAGE_CHARS)] = ""
    for_session: bool = False


class ApprovalAnswers(Payload):
    approvals: Annotated[list[ApprovalGiven], Field(min_length=1), _limited(MAX_ANSWERS, "approvals")]


class CompactRequest(Payload):
    """`instructions`: what the summary should mind. `dry_run`: only say what would happen."""

    instructions: Annotated[str, Field(max_length=MAX_INSTRUCTIONS)] | None = None
    dry_run: bool = False
