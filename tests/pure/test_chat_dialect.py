"""What each refusal teaches; its words are those of the servers."""

from dataclasses import replace

import pytest

from app.providers.openai.dialect import SHORT_ID, Dialect

FIRST = Dialect(("max_tokens", "max_completion_tokens"))
TAUGHT = [
    (
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        {"limits": ("max_completion_tokens",)},
    ),
    (
        400,
        "max_tokens is too large: 32000. This model supports at most 16384 completion tokens",
        {"most_output": 16_384},
    ),
    (400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", {"most_output": 8192}),
    (400, "`max_tokens` must be less than or equal to `8192`", {"most_output": 8192}),
    (400, "Unrecognized request argument supplied: stream_options", {"usage": False}),
    (400, "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs'}]", {"usage": False}),
    (
        422,
        "[{'type': 'extra_forbidden', 'loc': ('body', 'user'), 'msg': 'Extra inputs are not permitted'}]",
        {"user": False},
    ),
    (400, "Unrecognized request argument supplied: user", {"user": False}),
    (400, "Invalid content type. image_url is only supported by certain models.", {"images": False}),
    (500, "image input is not supported - hint: you may need to provide the mmproj", {"images": False}),
    (400, "llama-3 is not a multimodal model", {"images": False}),
    (404, "No endpoints found that support image input", {"images": False}),
    (400, "messages[1].content must be a string", {"images": False}),
    (400, "Unknown part type: file", {"files": False}),
    (400, "unsupported content[].type", {"files": False}),
    (400, "Tool call id was toolu_1 but must be a-z, A-Z, 0-9, with a length of 9.", {"id_chars": SHORT_ID}),
]


@pytest.mark.parametrize(("status", "message", "change"), TAUGHT)
def test_a_refusal_teaches_one_thing_once(status, message, change):
    learned = FIRST.after(status, message)
    assert learned == replace(FIRST, **change)
    assert learned.after(status, message) is None


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Unexpected role 'user' after role 'tool'"),
        (400, "This model's maximum context length is 8192 tokens."),
        (401, "max_tokens is not supported"),
        (429, "image input is not supported"),
        (
            400,
            "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 8192",
        ),
        (500, ""),
    ],
)
def test_any_other_refusal_teaches_nothing(status, message):
    assert FIRST.after(status, message) is None


def test_a_server_that_knows_no_limit_gets_none():
    spoken = FIRST
    for name in ("max_tokens", "max_completion_tokens"):
        spoken = spoken.after(422, f"{name}: Extra inputs are not permitted")
    assert spoken.limits == ()
