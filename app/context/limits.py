"""What a session and its turns may ask of a model."""

from collections.abc import Mapping
from typing import Any

from app.context.budget import make_budget
from app.conversation.model_profile import ModelProfile
from app.errors import invalid


def check_max_tokens(profile: ModelProfile, max_tokens: int | None, thinking: Mapping[str, Any] | None) -> None:
    """Raises InvalidPayload when the model cannot write as much, or a thinking budget would not fit below it."""
    if max_tokens is None:
        return
    least = int((thinking or {}).get("budget_tokens") or 0) + 1
    if not least <= max_tokens <= profile.max_output_tokens:
        raise invalid("max_tokens", f"must be {least} to {profile.max_output_tokens} for {profile.model}")


def check_window(profile: ModelProfile, thinking: Mapping[str, Any] | None, field: str) -> None:
    """Raises InvalidPayload naming `field` when a thinking budget leaves too little of the window to the input."""
    try:
        make_budget(profile, None, thinking)
    except ValueError:
        raise invalid(field, "the thinking budget and an answer take more than half of the working window") from None
