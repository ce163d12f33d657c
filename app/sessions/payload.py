"""Checks of what a client chose for its session. Every error names the field and the limit, never the value."""

from collections.abc import Iterable, Mapping
from typing import Any

from app.context.block_fields import first_fault
from app.context.blocks import without_breakpoints
from app.conversation.clean import clean_json
from app.conversation.messages import Block, Content, as_content, is_blank
from app.errors import invalid

MIN_BUDGET = 1024  # the provider's smallest thinking budget
DISPLAYS = ("omitted", "summarized")
THINKING_KEYS: dict[str, frozenset[str]] = {
    "enabled": frozenset({"type", "budget_tokens", "display"}),
    "adaptive": frozenset({"type", "display"}),
    "between_tools": frozenset({"type"}),
    "disabled": frozenset({"type"}),
}


def read_system(system: str | Iterable[Block] | None) -> Content:
    """System as text blocks, cleaned, blank ones dropped. Raises InvalidPayload."""
    blocks = tuple(clean_json(block) for block in as_content(system or ""))
    if fault := first_fault(blocks, "system", {"text"}):
        raise invalid(fault.place, fault.rule)
    return tuple(block for block in without_breakpoints(blocks) if not is_blank(block))


def check_thinking(thinking: Mapping[str, Any] | None, max_tokens: int) -> None:
    """`max_tokens`: what a call will ask for; a thinking budget must leave room below it."""
    if thinking is None:
        return
    kind = thinking.get("type")
    known = THINKING_KEYS.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise invalid("thinking.type", f"must be one of {', '.join(sorted(THINKING_KEYS))}")
    if thinking.keys() - known:
        raise invalid("thinking", f"may only have {', '.join(sorted(known))}")
    if "display" in thinking and thinking["display"] not in DISPLAYS:
        raise invalid("thinking.display", f"must be one of {', '.join(DISPLAYS)}")
    if kind == "enabled":
        budget = thinking.get("budget_tokens")
        if max_tokens <= MIN_BUDGET:
            raise invalid("thinking.budget_tokens", f"needs max_tokens above {MIN_BUDGET}, here it is {max_tokens}")
        if not isinstance(budget, int) or not MIN_BUDGET <= budget < max_tokens:
            raise invalid("thinking.budget_tokens", f"must be {MIN_BUDGET} to {max_tokens - 1}, below max_tokens")
