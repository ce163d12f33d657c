"""THE order of the chain, outermost first: contributors, then what measures and shapes, then guards.

| place | why here |
|---|---|
| stable_system | the provider hashes tools, then system, then messages; the stable part of system comes first |
| system_breakpoint | marks the last block there is now, so everything added later stands behind the mark |
| volatile_system | memory and date may change between epochs without voiding what is before the mark |
| tools | the tiers measure the whole request, so its fixed part must be there before them |
| recorded_view | the tiers shape what the ledger says, not the raw transcript |
| result_offload | at birth, before the first send, so it never changes a sent prefix |
| argument_truncation | cheap and recoverable before dear and lossy |
| micro_compaction | still no model call |
| message_cap | off unless set |
| pair_summaries | off unless set |
| summarization | after everything cheaper was tried |
| fit | only what is left over is previewed |
| media_shedding | bytes, not tokens, decide |
| mechanical_truncation | the last resort, and the fallback of every plan that is refused |
| thinking_policy | depends on what the tiers changed |
| max_tokens | what the shaped request leaves of the window |
| message_breakpoints | positions in the final message list |
| validator | nothing changes after it |
"""

from app.middleware.breakpoints import message_breakpoints
from app.middleware.cache_index import system_breakpoint
from app.middleware.chain import Middleware
from app.middleware.max_tokens import clamp_max_tokens
from app.middleware.recorded_view import recorded_view
from app.middleware.system_blocks import stable_system
from app.middleware.thinking_policy import thinking_policy
from app.middleware.tool_list import stable_tools
from app.middleware.validator import validator

PLACES = (
    "stable_system",
    "system_breakpoint",
    "volatile_system",
    "tools",
    "recorded_view",
    "result_offload",
    "argument_truncation",
    "micro_compaction",
    "message_cap",
    "pair_summaries",
    "summarization",
    "fit",
    "media_shedding",
    "mechanical_truncation",
    "thinking_policy",
    "max_tokens",
    "message_breakpoints",
    "validator",
)

FILLED: dict[str, Middleware] = {
    "stable_system": stable_system,
    "system_breakpoint": system_breakpoint,
    "tools": stable_tools,
    "recorded_view": recorded_view,
    "thinking_policy": thinking_policy,
    "max_tokens": clamp_max_tokens,
    "message_breakpoints": message_breakpoints,
    "validator": validator,
}

STACK: tuple[Middleware, ...] = tuple(FILLED[place] for place in PLACES if place in FILLED)
