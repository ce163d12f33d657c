"""What a turn must be before anything is stored."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.context.block_fields import USER_KINDS, first_fault
from app.context.blocks import without_breakpoints
from app.conversation.clean import clean_json
from app.conversation.messages import Block, Content, Message, as_content, is_blank
from app.conversation.model_profile import ModelProfile
from app.conversation.request import ModelRequest, ToolDefinition
from app.conversation.run import RunInput
from app.errors import InputTooLarge, invalid
from app.ports import Estimator

# An estimate without an anchor may be this much too high (measured on real sessions): only a sure thing is refused.
BOUND = 0.15


def accept_input(
    content: str | Sequence[Block], model: str | None, max_tokens: int | None, metadata: dict[str, Any]
) -> RunInput:
    """The input, cleaned. Raises InvalidPayload naming the field."""
    blocks: Content = tuple(clean_json(block) for block in as_content(content))
    if not blocks:
        raise invalid("content", "must have at least one block")
    if fault := first_fault(blocks, "content", USER_KINDS):
        raise invalid(fault.place, fault.rule)
    for index, block in enumerate(blocks):
        if is_blank(block):
            raise invalid(f"content.{index}.text", "must not be empty or white space only")
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
