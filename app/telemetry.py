"""Names of spans, attributes and metrics, and the instruments. The OpenTelemetry API only: without an SDK all is free.

The gen_ai names are our own constants, since the convention package marks its own as moved.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

from opentelemetry import metrics, trace

SCOPE = "hango"

SPAN_TURN = "invoke_agent"
SPAN_CHAT = "chat"
SPAN_TOOL = "execute_tool"

OPERATION = "gen_ai.operation.name"
CONVERSATION_ID = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
RESPONSE_FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
TOKEN_TYPE = "gen_ai.token.type"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"
CALL_PURPOSE = "hango.call.purpose"
RUN_ID = "hango.run.id"
TURN_STATUS = "hango.turn.status"

TOKEN_USAGE = "gen_ai.client.token.usage"
INPUT_TOKENS_HISTOGRAM = "hango.context.input_tokens"
READ_RATIO = "hango.cache.read_ratio"
COMPACTIONS = "hango.context.compactions"
EVICTED_MESSAGES = "hango.context.evicted_messages"
TOOL_ARGS_TRUNCATED = "hango.context.tool_args_truncated"
EPOCHS = "hango.context.epochs"
OVERFLOW_RETRIES = "hango.context.overflow_retries"
TURNS = "hango.turns"

RUNS_LIVE = "hango.runs.live"
RUNS_QUEUED = "hango.runs.queued"
STREAMS_OPEN = "hango.streams.open"
DB_CONNECTIONS = "hango.db.connections"
LOOP_DELAY = "hango.event_loop.delay"
PROCESS_MEMORY = "process.memory.usage"
PROCESS_CPU = "process.cpu.time"

COMPACTED = "gen_ai.conversation.compacted"
OVERFLOW_RETRY = "provider.context_overflow_retry"
TOKENS_BEFORE = "hango.tokens.before"
TOKENS_AFTER = "hango.tokens.after"
MESSAGES_EVICTED = "hango.messages.evicted"
COMPACTION_REASON = "hango.compaction.reason"
FS_PATH = "hango.fs.path"
EPOCH_CAUSE = "hango.epoch.cause"
OVERFLOW_STEP = "hango.overflow.step"
CONNECTION_STATE = "state"

SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

# Buckets' upper bounds. Of one call's tokens by type: the convention's. Of a whole request: close where the marks are.
TOKEN_BOUNDS = tuple(4.0**power for power in range(11))
REQUEST_BOUNDS = (1e3, 2.5e3, 5e3, 1e4, 2e4, 4e4, 6e4, 8e4, 1e5, 1.2e5, 1.4e5, 1.6e5, 1.8e5, 2e5, 3e5, 5e5, 1e6)
MESSAGE_BOUNDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4)
RATIO_BOUNDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)

# Whether spans hold what was said. Set once, with the providers, when the operator asks for it.
content = False

_entered: ContextVar[Mapping[str, str]] = ContextVar("hango.entered", default=MappingProxyType({}))


def enter(**fields: str) -> None:
    """From here on each log line of this task, and of those it makes, has these fields in place of the ones before."""
    _entered.set(fields)


def entered() -> Mapping[str, str]:
    return _entered.get()


tracer = trace.get_tracer(SCOPE)
meter = metrics.get_meter(SCOPE)

token_usage = meter.create_histogram(
    TOKEN_USAGE,
    unit="{token}",
    description="Tokens of one model call by type and purpose",
    explicit_bucket_boundaries_advisory=TOKEN_BOUNDS,
)
context_input = meter.create_histogram(
    INPUT_TOKENS_HISTOGRAM,
    unit="{token}",
    description="Total input of one main model call",
    explicit_bucket_boundaries_advisory=REQUEST_BOUNDS,
)
read_ratio = meter.create_histogram(
    READ_RATIO,
    unit="1",
    description="Share of a call's input read from the prompt cache",
    explicit_bucket_boundaries_advisory=RATIO_BOUNDS,
)
compactions = meter.create_counter(COMPACTIONS, unit="{compaction}", description="Summaries and truncations by reason")
evicted_messages = meter.create_histogram(
    EVICTED_MESSAGES,
    unit="{message}",
    description="Rows that left the view by one compaction",
    explicit_bucket_boundaries_advisory=MESSAGE_BOUNDS,
)
tool_args_truncated = meter.create_counter(
    TOOL_ARGS_TRUNCATED, unit="{call}", description="Tool calls whose arguments were shortened in the view"
)
epochs = meter.create_counter(EPOCHS, unit="{epoch}", description="Changes of an already sent prefix by cause")
overflow_retries = meter.create_counter(
    OVERFLOW_RETRIES, unit="{retry}", description="Model calls made again after an overflow, by the step taken"
)
turns = meter.create_counter(TURNS, unit="{turn}", description="Runs that ended, by status")
