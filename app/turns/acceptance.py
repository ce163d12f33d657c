"""What a turn must be before anything is stored."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.context.block_fields import USER_KINDS, first_fault
from app.context.blocks import without_breakpoints
from app.context.budget import make_budget
from app.conversation.clean import clean_json
from app.conversation.messages import Block, Content, Message, as_content, is_blank
from app.conversation.model_profile import ModelProfile
from app.conversation.request import ModelRequest, ToolDefinition
from app.conversation.run import RunInput
from app.conversation.session import Session
from app.errors import InputTooLarge, InvalidPayload
from app.ports import Estimator

# An estimate without an anchor may be this much too high (measured on real sessions): only a sure thing is refused.
BOUND = 0.15


def accept_input(
    content: str | Sequence[Block], model: str | None, max_tokens: int | None, metadata: dict[str, Any]
) -> RunInput:
    """The input, cleaned. Raises InvalidPayload naming the field."""
    blocks: Content = tuple(clean_json(block) for block in as_content(content))
    if not blocks:
        raise _invalid("content", "must have at least one block")
    if fault := first_fault(blocks, "content", USER_KINDS):
        raise _invalid(fault.place, fault.rule)
    for index, block in enumerate(blocks):
        if is_blank(block):
            raise _invalid(f"content.{index}.text", "must not be empty or white space only")
    return RunInput(without_breakpoints(blocks), model, max_tokens, clean_json(metadata))


def check_size(
    system: Content, run_input: RunInput, profile: ModelProfile, tools: Sequence[ToolDefinition], estimator: Estimator
) -> None:
    """Raises InputTooLarge with the numbers when preamble and input cannot fit the model's real window."""
    request = ModelRequest(profile.model, 1, "", system, tuple(tools))
    fixed = estimator.estimate_request(request)
    whole = estimator.estimate_request(replace(request, messages=(Message("user", run_input.content),)))
    if whole * (1 - BOUND) > profile.max_input_tokens:
        raise InputTooLarge(
            f"System and tools (about {fixed} tokens) with this input (about {whole - fixed}) can never fit"
            f" the window of {profile.max_input_tokens} tokens.",
            fixed_tokens=fixed,
            input_tokens=whole - fixed,
            max_input_tokens=profile.max_input_tokens,
        )


def check_max_tokens(session: Session, max_tokens: int | None, profile: ModelProfile) -> None:
    """Raises InvalidPayload when the model cannot write as much, or the session's thinking would not fit below it."""
    if max_tokens is None:
        return
    least = int((session.settings.thinking or {}).get("budget_tokens") or 0) + 1
    if not least <= max_tokens <= profile.max_output_tokens:
        raise _invalid("max_tokens", f"must be from {least} to {profile.max_output_tokens} for {profile.model}")


def check_thinking(session: Session, profile: ModelProfile) -> None:
    """Raises InvalidPayload when the session's thinking leaves too little of this model's window to the input."""
    try:
        make_budget(profile, None, session.settings.thinking)
    except ValueError:
        raise _invalid("model", "the session's thinking takes more than half of its working window") from None


def _invalid(field: str, rule: str) -> InvalidPayload:
    return InvalidPayload(f"{field}: {rule}", errors=[{"field": field, "rule": rule}])
