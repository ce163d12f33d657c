import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.overflow import classify, reported

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
        (413, "prompt token count of 130000 exceeds the limit of 128000", None, "tokens"),
        (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000", None, "tokens"),
        (422, "max_completion_tokens: Extra inputs are not permitted", None, None),
        (400, "max_tokens is too large: 32000. This model supports at most 16384 completion tokens", None, None),
        (400, "Invalid 'messages[2].content': string too long. Expected a string with maximum length 100", None, None),
        (413, "Request too large on tokens per minute (TPM): Limit 6000, Requested 14810, reduce", None, None),
        (529, LONG, None, None),
        (500, LONG, None, None),
        (None, LONG, None, None),
        (200, LONG, "end_turn", None),
        (200, "", "max_tokens", None),
    ],
)
def test_only_an_overflow_is_one(status, message, stop_reason, expected):
    assert classify(status, message, stop_reason) == expected


# As the servers write them; tokens and window where they name them.
WORDINGS = [
    (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens.",
        (204_308, 128_000),
    ),
    (
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 136013 tokens"
            " (135000 in the messages, 1013 in the functions)."
        ),
        (135_000, 128_000),
    ),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", (None, None)),
    (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
        (300_000, 272_000),
    ),
    (
        (
            "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the"
            " messages, 10000 in the completion). Please reduce the length of the messages or completion."
        ),
        (112_946, 16_384),
    ),
    (
        (
            "This model's maximum context length is 2048 tokens. However, your request has 2100 input tokens. Please"
            " reduce the length of the input messages. (parameter=input_tokens, value=2100)"
        ),
        (2100, 2048),
    ),
    (
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 8192"
            " tokens and your request has 500 input tokens (32000 > 8192 - 500)."
        ),
        (500, 8192),
    ),
    (
        (
            "You passed 40001 input tokens and requested 1000 output tokens. However, the model's context length is"
            " only 32768 tokens, resulting in a maximum input length of 31768 tokens."
        ),
        (40_001, 32_768),
    ),
    ("The decoder prompt (length 40000) is longer than the maximum model length of 32768.", (40_000, 32_768)),
    ("the request exceeds the available context size, try increasing it", (None, None)),
    ("request (1407 tokens) exceeds the available context size (256 tokens), try increasing it", (1407, 256)),
    ("prompt too long; exceeded max context length by 5000 tokens", (None, None)),
    ("the input length exceeds the context length", (None, None)),
    (
        (
            "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with"
            " context length of only 32768 tokens, which is not enough."
        ),
        (111_490, 32_768),
    ),
    ("The number of tokens to keep from the initial prompt is greater than the context length.", (None, None)),
    ("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", (15_028, 7424)),
    (
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 80125 `inputs` tokens"
            " and 4096 `max_new_tokens`"
        ),
        (80_125, 4097),
    ),
    ("Input validation error: `inputs` must have less than 1024 tokens. Given: 2000", (2000, 1024)),
    ("The input (140000 tokens) is longer than the model's context length (131072 tokens).", (140_000, 131_072)),
    (
        (
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens"
            " (149000 of text input, 1000 in the output)."
        ),
        (149_000, 131_072),
    ),
    (
        "Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length",
        (140_000, 131_072),
    ),
    ("Please reduce the length of the messages or completion.", (None, None)),
    (
        "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
        (42_328, 40_000),
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        (537_812, 131_072),
    ),
    (
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        (1_196_265, 1_048_575),
    ),
    ("Requested tokens (2285) exceed context window of 2048", (2285, 2048)),
    (
        (
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of"
            " 9000 tokens: 7000 tokens from the input messages and 2000 tokens for the completion."
        ),
        (7000, 8192),
    ),
    ("Your request exceeded model token limit: 262144 (requested: 300000)", (300_000, 262_144)),
    ("invalid params, context window exceeds limit", (None, None)),
    ("Range of input length should be [1, 129024]", (None, 129_024)),
    ("prompt token count of 130000 exceeds the limit of 128000", (130_000, 128_000)),
    ("Input length 300000 exceeds the maximum allowed input length of 262144 tokens.", (300_000, 262_144)),
    ("Input is too long for requested model.", (None, None)),
    ("Error: context_length_exceeded", (None, None)),
    ("prompt is too long: 208310 tokens > 200000 maximum", (208_310, 200_000)),
    ("400: messages.3: prompt is too long: 208,310 tokens > 200,000 maximum.", (208_310, 200_000)),
    ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", (190_000, 200_000)),
    ("too many tokens: many > few", (None, None)),
    ("too many tokens: 12 > " + "9" * 5000, (None, None)),
]


@pytest.mark.parametrize(("message", "numbers"), WORDINGS)
def test_each_servers_wording_is_known_and_its_numbers_are_read(message, numbers):
    assert classify(400, message, None) == "tokens"
    assert reported(message) == numbers


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_message_breaks_the_reading(left, right):
    found = reported(f"{left}>{right}")
    assert min(number or 1 for number in found) > 0
