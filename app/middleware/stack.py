"""THE order of the chain, outermost first: contributors, then what measures and shapes, then guards.

| place | why here |
|---|---|
| stable_system | the provider hashes tools, then system, then messages; the stable part of system comes first |
| system_breakpoint | marks the last block there is now, so everything added later stands behind the mark |
| volatile_system | memory and date may change between epochs without voiding what is before the mark |
| tools | the tiers measure the whole request, so its fixed part must be there before them |
| recorded_view | the tiers shape what the ledger says, not the raw transcript |
| result_offload | at birth: planned before it is decided whether an epoch begins, rendered with the recorded view |
| argument_truncation | cheap and recoverable before dear and lossy |
| micro_compaction | still no model call |
| message_cap | off unless set; what leaves needs no line of its own |
| pair_summaries | off unless set; the lines were paid for in the background |
| summarization | after everything cheaper was tried |
| fit | only what is left over is previewed |
| media_shedding | bytes, not tokens, decide |
| mechanical_truncation | the last resort, the fallback of refused plans; then the verdict on the epoch |
| thinking_policy | depends on what the tiers changed |
| max_tokens | what the shaped request leaves of the window |
| message_breakpoints | positions in the final message list |
| validator | nothing changes after it |
"""

from collections.abc import Sequence

from app.middleware.argument_truncation import argument_truncation
from app.middleware.breakpoints import message_breakpoints
from app.middleware.cache_index import system_breakpoint
from app.middleware.chain import Middleware
from app.middleware.fit import fit
from app.middleware.max_tokens import clamp
from app.middleware.mechanical_truncation import mechanical_truncation
from app.middleware.media_shedding import media_shedding
from app.middleware.message_cap import message_cap
from app.middleware.micro_compaction import micro_compaction
from app.middleware.recorded_view import recorded_view
from app.middleware.summarization.tier import summarization
from app.middleware.system_blocks import stable_system
from app.middleware.thinking_policy import thinking_policy
from app.middleware.tool_list import stable_tools
from app.middleware.tool_pair_summary import tool_pair_summary
from app.middleware.validator import validator
from app.middleware.volatile_system import volatile_system

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
    "volatile_system": volatile_system,
    "tools": stable_tools,
    "recorded_view": recorded_view,
    "argument_truncation": argument_truncation,
    "micro_compaction": micro_compaction,
    "message_cap": message_cap,
    "pair_summaries": tool_pair_summary,
    "summarization": summarization,
    "fit": fit,
    "media_shedding": media_shedding,
    "mechanical_truncation": mechanical_truncation,
    "thinking_policy": thinking_policy,
    "max_tokens": clamp,
    "message_breakpoints": message_breakpoints,
    "validator": validator,
}

STACK: tuple[Middleware, ...] = tuple(FILLED[place] for place in PLACES if place in FILLED)
# Without them a server makes no record any more; what is stored stays readable, and in force.
TIERS = frozenset(PLACES[PLACES.index("result_offload") : PLACES.index("mechanical_truncation") + 1])


def has_tiers(stack: Sequence[Middleware]) -> bool:
    return any(FILLED[place] in stack for place in TIERS & FILLED.keys())
