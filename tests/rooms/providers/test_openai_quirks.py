"""What compatible servers do that no document says, byte for byte."""

import json

import pytest

from app.conversation.messages import text_block
from app.conversation.usage import Usage
from app.errors import ProviderFailure
from tests.rooms.providers.anthropic_room import items, plain, request
from tests.rooms.providers.openai_room import DONE, chat_server, chunk, stream

HI, STOP = chunk({"content": "hi"}), chunk({}, "stop")
FULL = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."


def told(**error) -> bytes:
    return b"data: " + json.dumps({"error": error}).encode() + b"\n\n"


ENDS = {
    "done": stream(HI, STOP),
    "no done": stream(HI, STOP, done=b""),
    "hangs up after the finish reason": stream(HI, STOP)[:-1],
    "keep-alives and blank data": stream(b": ping\n\n", HI, b"data:\n\n: OPENROUTER PROCESSING\n\n", STOP),
    "nulls": stream(
        chunk(
            {"role": "assistant", "content": "hi", "tool_calls": None, "refusal": None, "function_call": None},
            usage=None,
        ),
        chunk(None, "stop", usage=None, error=None, system_fingerprint=None),
    ),
    "no choices at first": stream(b'data: {"choices": [], "prompt_filter_results": []}\n\n', HI, STOP),
    "another choice": stream(HI, b'data: {"choices": [{"index": 1, "delta": {"content": "no"}}]}\n\n', STOP),
    "whole, not streamed": [
        plain(
            "200 OK",
            json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}, indent=1).encode(),
            "content-type: application/json",
        )
    ],
}


@pytest.mark.parametrize("answer", ENDS.values(), ids=ENDS)
async def test_a_whole_answer_is_taken_however_it_is_framed(answer):
    # One that ends without its last bytes must close the connection, or nobody would know that it ended.
    cut = answer if answer[-1].endswith(b"\r\n\r\n") or len(answer) == 1 else [*answer, b"x"]
    async with chat_server(cut) as (provider, _, _):
        reply = (await items(provider))[-1]
    assert (reply.content, reply.stop_reason, reply.usage) == ((text_block("hi"),), "end_turn", Usage(calls=1))


@pytest.mark.parametrize(
    "pieces",
    [
        (HI, STOP, b'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}\n\n'),
        (HI, chunk({}, "stop", usage={"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None})),
        (
            chunk({"content": "hi"}, usage={"prompt_tokens": 9, "completion_tokens": 1}),
            chunk({}, "stop", usage={"prompt_tokens": 9, "completion_tokens": 2}),
        ),
    ],
    ids=["in a chunk of its own", "with the finish reason", "with every chunk"],
)
async def test_usage_is_found_wherever_it_is(pieces):
    async with chat_server(stream(*pieces)) as (provider, _, _):
        assert (await items(provider))[-1].usage == Usage(input=9, output=2, calls=1)


@pytest.mark.parametrize(
    ("error", "code", "again"),
    [
        (told(message=FULL, type="invalid_request_error", code="context_length_exceeded"), "context_overflow", False),
        (told(message="Too long for us.", code="context_length_exceeded"), "context_overflow", False),
        (told(message="the request exceeds the available context size", code=500, n_prompt_tokens=9, n_ctx=8),
         "context_overflow", False),
        (b"event: error\n" + told(message="greater than the context length"), "context_overflow", False),
        (b'error: {"code": 400, "message": "exceeds the context size"}\n\n', "context_overflow", False),
        (b'data: {"error": "`inputs` must have less than 9 tokens", "error_type": "validation"}\n\n',
         "context_overflow", False),
        (b'data: {"object": "error", "message": "no such role", "code": 400}\n\n', "provider_rejected", False),
        (told(message="Rate limit reached: too many tokens", type="rate_limit_error"), "provider_overloaded", True),
        (told(message="busy", code="503"), "provider_error", True),
        (told(message="You exceeded your quota", code="insufficient_quota"), "provider_rejected", False),
        (told(message="Provider returned error", code=400, metadata={"raw": FULL}), "context_overflow", False),
        (told(message="what?"), "provider_error", True),
    ],
)  # fmt: skip
async def test_an_error_inside_a_stream_is_read_in_every_form(error, code, again):
    async with chat_server(stream(error)) as (provider, wire, _):
        with pytest.raises(ProviderFailure) as caught:
            await items(provider)
    assert caught.value.code == code
    assert (len(wire.bodies) > 1) == again


JSON = "content-type: application/json"
PAGE = b"<html><body>404</body></html>"


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (plain("200 OK", b'{"error": {"message": "no", "code": 400}}', JSON), "provider_rejected", "no"),
        (plain("200 OK", PAGE, "content-type: text/html"), "provider_error", "check OPENAI_BASE_URL"),
        (plain("404 Not Found", PAGE, "content-type: text/html"), "provider_rejected", "answered 404"),
        (plain("500 Oops", json.dumps({"error": FULL}).encode(), JSON), "context_overflow", "8192"),
        (plain("422 No", b'{"detail": [{"msg": "Field required"}]}', JSON), "provider_rejected", "Field required"),
        (plain("400 No", b'{"object": "error", "message": "No such role"}', JSON), "provider_rejected", "No such role"),
        (plain("401 No", b'{"error": {"message": "a sk-test-0123456789"}}', JSON), "provider_rejected", r"a \[key\]"),
        (plain("413 Big", b'{"error": {"message": "tokens (TPM): Limit 6", "code": "rate_limit_exceeded"}}', JSON),
         "provider_rejected", "TPM"),
        (plain("413 Big", b"", JSON), "context_overflow", "413"),
    ],
)  # fmt: skip
async def test_an_error_answer_is_read_in_every_form(answer, code, words):
    async with chat_server([answer]) as (provider, wire, _):
        with pytest.raises(ProviderFailure, match=words) as caught:
            await items(provider)
    assert (caught.value.code, len(wire.bodies)) == (code, 1)
    assert caught.value.__cause__ is None


async def test_the_server_is_spoken_to_as_it_asks_from_then_on():
    refusals = [
        plain("400 No", json.dumps({"error": {"message": message}}).encode(), JSON)
        for message in (
            "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
            "max_tokens is too large: 1000. This model supports at most 512 completion tokens",
            "Unrecognized request argument supplied: user",
        )
    ]
    async with chat_server(*([one] for one in refusals), stream(HI, STOP)) as (provider, wire, clock):
        for _ in range(2):
            assert (await items(provider))[-1].stop_reason == "end_turn"
        other = await items(provider, request(model="another"))
    bodies = [json.loads(body) for body in wire.bodies]
    assert len(bodies) == 6
    assert clock.slept == []
    assert {name: bodies[4].get(name) for name in ("max_tokens", "max_completion_tokens", "user")} == {
        "max_tokens": None,
        "max_completion_tokens": 512,
        "user": None,
    }
    assert bodies[5]["max_tokens"] == 1000
    assert other[-1].stop_reason == "end_turn"


async def test_a_refusal_of_what_was_not_sent_is_told():
    answer = plain("400 No", b'{"error": {"message": "image input is not supported"}}', JSON)
    async with chat_server([answer]) as (provider, wire, _):
        with pytest.raises(ProviderFailure, match="image input"):
            await items(provider)
    assert len(wire.bodies) == 1


async def test_a_stream_that_ends_early_is_asked_for_again():
    async with chat_server(stream(done=b""), stream(done=DONE), stream(HI, STOP)) as (provider, wire, _):
        assert (await items(provider))[-1].stop_reason == "end_turn"
    assert len(wire.bodies) == 3


@pytest.mark.parametrize(
    ("listed", "limits"),
    [
        ({"max_model_len": 32_768}, (32_768, 32_768)),
        ({"context_length": 131_072, "max_output_tokens": 8192}, (131_072, 8192)),
        ({"context_window": 8192, "max_completion_tokens": 4096}, (8192, 4096)),
        ({"max_context_length": None}, None),
        ({}, None),
    ],
)
async def test_a_models_window_is_read_from_the_list_where_it_is_told(listed, limits):
    async with chat_server([plain("200 OK", json.dumps({"data": [{"id": "m", **listed}]}).encode(), JSON)]) as (
        provider,
        _,
        _,
    ):
        assert await provider.retrieve_model("m") == limits
        assert await provider.retrieve_model("other") is None


ROOM = (
    "'max_tokens' is too large: {}. "
    "This model's maximum context length is 8192 tokens and your request has {} input tokens"
)


@pytest.mark.parametrize(
    ("asked", "prompt", "then"), [(7000, 1500, [7000, 6692]), (32_000, 1500, [32_000]), (7000, 7500, [7000])]
)
async def test_a_room_for_the_answer_that_is_a_little_too_large_is_cut_to_what_there_is(asked, prompt, then):
    refusal = json.dumps({"error": {"message": ROOM.format(asked, prompt)}}).encode()
    async with chat_server([plain("400 No", refusal, JSON)], stream(HI, STOP)) as (provider, wire, _):
        if len(then) == 2:
            assert (await items(provider, request(max_tokens=asked)))[-1].stop_reason == "end_turn"
        else:
            with pytest.raises(ProviderFailure, match="context length"):
                await items(provider, request(max_tokens=asked))
    assert [json.loads(body)["max_tokens"] for body in wire.bodies] == then
