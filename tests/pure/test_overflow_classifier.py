import pytest

from app.context.overflow import classify

LONG = "prompt is too long: 208310 tokens > 200000 maximum"


@pytest.mark.parametrize(
    ("status", "message", "stop_reason", "expected"),
    [
        (400, LONG, None, "tokens"),
        (400, "Prompt too long", None, "tokens"),
        (400, "error code prompt_too_long", None, "tokens"),
        (400, "messages.4: too many tokens", None, "tokens"),
        (400, "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000", None, "tokens"),
        (400, "input length and max_tokens exceed context limit: 1 + 2 > 2", None, "tokens"),
        (413, "Request exceeds the maximum size", None, "bytes"),
        (413, "", None, "bytes"),
        (200, "", "model_context_window_exceeded", "tokens"),
        (None, "", "model_context_window_exceeded", "tokens"),
        (400, "messages.7: `tool_use` ids were found without `tool_result` blocks", None, None),
        (400, "max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens", None, None),
        (400, "rate limit: too many tokens per minute", None, None),
        (400, "Too Many Requests: prompt is too long", None, None),
        (413, "rate_limit_error: slow down", None, None),
        (429, "This request would exceed your limit of 40,000 input tokens per minute: too many tokens", None, None),
        (529, LONG, None, None),
        (500, LONG, None, None),
        (None, LONG, None, None),
        (200, LONG, "end_turn", None),
        (200, "", "max_tokens", None),
    ],
)
def test_only_an_overflow_is_one(status, message, stop_reason, expected):
    assert classify(status, message, stop_reason) == expected
