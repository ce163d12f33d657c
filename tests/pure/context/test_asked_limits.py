import pytest

from app.context.limits import check_max_tokens, check_window
from app.conversation.model_profile import ModelProfile
from app.errors import InvalidPayload

SMALL = ModelProfile("small", max_input_tokens=8192, max_output_tokens=3000)


def thinking(budget: int) -> dict[str, object]:
    return {"type": "enabled", "budget_tokens": budget}


def field_of(refused: pytest.ExceptionInfo[InvalidPayload]) -> str:
    [error] = refused.value.extra["errors"]
    return error["field"]


@pytest.mark.parametrize("tokens", [None, 1, 3000])
def test_max_tokens_up_to_what_the_model_writes_is_accepted(tokens: int | None):
    assert check_max_tokens(SMALL, tokens, None) is None


@pytest.mark.parametrize("tokens", [0, -1, 3001])
def test_max_tokens_outside_the_limits_of_the_model_is_refused(tokens: int):
    with pytest.raises(InvalidPayload) as refused:
        check_max_tokens(SMALL, tokens, None)
    assert field_of(refused) == "max_tokens"


def test_max_tokens_must_leave_room_over_a_thinking_budget():
    assert check_max_tokens(SMALL, 2001, thinking(2000)) is None
    with pytest.raises(InvalidPayload, match="2001"):
        check_max_tokens(SMALL, 2000, thinking(2000))
    assert check_max_tokens(SMALL, 1, {"type": "adaptive"}) is None


def test_thinking_and_an_answer_may_take_half_of_the_window():
    assert check_window(SMALL, thinking(3072), "thinking.budget_tokens") is None
    assert check_window(SMALL, {"type": "adaptive"}, "model") is None
    with pytest.raises(InvalidPayload) as refused:
        check_window(SMALL, thinking(3073), "model")
    assert field_of(refused) == "model"
