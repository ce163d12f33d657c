"""Scripted faults as the official SDK sees them."""

import asyncio
import json
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import AsyncAnthropic

from tests.double.control import Double
from tests.double.server import run_double
from tests.double.steps import (
    BEFORE_END,
    BEFORE_STOP,
    Break,
    Hold,
    HttpError,
    RawJson,
    Reply,
    Tokens,
    call,
    overflow,
    say,
    text,
    think,
)
from tests.rooms.double.words import Client, ask

STATUSES: dict[int, tuple[type[anthropic.APIStatusError], str]] = {
    400: (anthropic.BadRequestError, "invalid_request_error"),
    401: (anthropic.AuthenticationError, "authentication_error"),
    403: (anthropic.PermissionDeniedError, "permission_error"),
    404: (anthropic.NotFoundError, "not_found_error"),
    413: (anthropic._exceptions.ContentTooLargeError, "request_too_large"),
    429: (anthropic.RateLimitError, "rate_limit_error"),
    500: (anthropic.InternalServerError, "api_error"),
    504: (anthropic._exceptions.GatewayTimeoutError, "timeout_error"),
    529: (anthropic._exceptions.OverloadedError, "overloaded_error"),
}


async def stream(client: AsyncAnthropic, **more: Any) -> anthropic.types.Message:
    """The message as far as the stream told it."""
    async with client.messages.stream(**ask(**more)) as events:
        async for _ in events:
            pass
        return events.current_message_snapshot


@pytest.mark.parametrize("status", STATUSES)
async def test_an_http_error_is_raised_as_its_class(status: int, double: Double, connect: Client) -> None:
    double.script(HttpError(status, "so it is", retry_after=7))
    kind, wire_type = STATUSES[status]
    with pytest.raises(kind) as raised:
        await stream(connect(double))
    assert (raised.value.status_code, raised.value.type) == (status, wire_type)
    assert "so it is" in raised.value.message
    assert raised.value.response.headers["retry-after"] == "7"
    assert not double.refused


async def test_the_sdk_asks_three_times_while_the_service_is_overloaded(double: Double, connect: Client) -> None:
    double.script(*[HttpError(529, "Overloaded", retry_after=0.001)] * 3)
    with pytest.raises(anthropic.APIStatusError):
        await stream(connect(double, max_retries=2))
    assert [exchange.status for exchange in double.requests] == [529] * 3


async def test_a_scripted_overflow_is_a_bad_request(double: Double, connect: Client) -> None:
    double.script(overflow(208310, 200000))
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long: 208310 tokens > 200000 maximum"):
        await stream(connect(double))


@pytest.mark.parametrize("place", [0, 2])
async def test_an_error_event_in_a_stream_has_status_200_and_is_not_retried(
    place: int, double: Double, connect: Client
) -> None:
    double.script(say("x" * 100, at={place: Break("overloaded_error")}))
    with pytest.raises(anthropic.APIStatusError) as raised:
        await stream(connect(double, max_retries=2))
    assert (raised.value.status_code, raised.value.type) == (200, "overloaded_error")
    assert len(double.requests) == 1


async def test_a_stream_cut_in_text_looks_like_a_short_answer(double: Double, connect: Client) -> None:
    double.script(say("x" * 100, at={3: Break()}))
    message = await stream(connect(double))
    assert message.content[0].to_dict()["text"] == "x" * 40
    assert message.stop_reason is None
    assert not double.requests[0].finished


async def test_a_stream_cut_in_a_call_gives_a_partial_input(double: Double, connect: Client) -> None:
    given = {"path": "a.py", "content": "y" * 40}
    double.script(Reply([call("t1", "write_file", given)], at={4: Break()}))
    message = await stream(connect(double))
    assert message.content[0].to_dict()["input"] == {"path": "a.py"}
    assert message.stop_reason is None


async def test_a_stream_cut_in_a_signature_gives_half_of_it(double: Double, connect: Client) -> None:
    double.script(Reply([think("hm")], at={2: Break(half=True)}))
    message = await stream(connect(double))
    whole: Any = double.requests[0].blocks[0]["signature"]
    assert message.content[0].to_dict()["signature"] == whole[: len(whole) // 2]


@pytest.mark.parametrize(("place", "stop_reason"), [(BEFORE_END, None), (BEFORE_STOP, "end_turn")])
async def test_a_stream_can_be_cut_between_its_last_events(
    place: int, stop_reason: str | None, double: Double, connect: Client
) -> None:
    double.script(say("all of it", at={place: Break()}))
    message = await stream(connect(double))
    assert (message.content[0].to_dict()["text"], message.stop_reason) == ("all of it", stop_reason)


async def test_a_reset_is_a_transport_error(double: Double, connect: Client) -> None:
    double.script(say("x" * 100, at={3: Break("reset")}))
    with pytest.raises(httpx2.RemoteProtocolError):
        await stream(connect(double))


async def test_a_held_reply_goes_on_when_released(double: Double, connect: Client) -> None:
    first, second = Hold(), Hold()
    double.script(say("x" * 60, at={0: first, 3: second}))
    asked = asyncio.create_task(stream(connect(double)))
    await first.reached.wait()
    assert double.requests[0].status == 0
    first.release()
    await second.reached.wait()
    assert double.requests[0].status == 200
    second.release()
    assert (await asked).content[0].to_dict()["text"] == "x" * 60


async def test_a_stalled_stream_notices_that_its_client_left(double: Double, connect: Client) -> None:
    stall = Hold()
    double.script(say("x" * 60, at={2: stall}), say("still there"))
    asked = asyncio.create_task(stream(connect(double)))
    await stall.reached.wait()
    asked.cancel()
    await double.requests[0].left.wait()
    assert not double.requests[0].finished
    assert (await stream(connect(double))).stop_reason == "end_turn"


async def test_a_choice_may_wait_and_see_the_request(double: Double, connect: Client) -> None:
    gate = asyncio.Event()

    async def choose(exchange: Any) -> Tokens:
        await gate.wait()
        return Tokens(len(exchange.body["messages"]))

    double.script(choose, purpose="count")
    counting = connect(double).messages.count_tokens(
        model="claude-sonnet-4-6", messages=[{"role": "user", "content": "a"}]
    )
    asked = asyncio.create_task(counting)
    gate.set()
    assert (await asked).input_tokens == 1


async def test_malformed_tool_json_is_a_value_error(double: Double, connect: Client) -> None:
    double.script(Reply([call("t1", "read_file", RawJson('{"path": nonsense'))]))
    with pytest.raises(ValueError, match="Unable to parse tool parameter JSON") as raised:
        await stream(connect(double))
    assert not isinstance(raised.value, anthropic.APIError)


async def test_max_tokens_cuts_a_call_in_the_middle(double: Double, connect: Client) -> None:
    double.script(Reply([text("writing"), call("t1", "write_file", {"path": "a.py", "content": "y" * 300})]))
    message = await stream(connect(double), max_tokens=20)
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 20
    assert message.content[1].to_dict()["input"] == {"path": "a.py"}


async def test_the_window_cuts_a_reply_after_deltas_were_sent(connect: Client) -> None:
    async with run_double(window=200) as double:
        double.script(say("z" * 900))
        message = await stream(connect(double), max_tokens=1000)
        room = 200 - double.requests[0].input_tokens
        assert message.stop_reason == "model_context_window_exceeded"
        assert message.content[0].to_dict()["text"] == "z" * 3 * room


async def test_input_over_the_window_is_refused_to_the_token(connect: Client) -> None:
    async with run_double(window=100, bytes_per_token=2) as double:
        client = connect(double)
        double.script(say("fits"))
        fits: dict[str, Any] = {"messages": [{"role": "user", "content": "a" * 192}], "tools": []}
        await stream(client, **fits)
        fits["messages"] = [{"role": "user", "content": "a" * 193}]
        with pytest.raises(anthropic.BadRequestError, match="prompt is too long: 101 tokens > 100 maximum"):
            await stream(client, **fits)
        assert (await client.messages.count_tokens(model="claude-sonnet-4-6", **fits)).input_tokens == 101
        assert len(double.refused) == 1


@pytest.mark.parametrize("stop_reason", ["refusal", "pause_turn", "stop_sequence", "something_new"])
async def test_any_stop_reason_can_be_played(stop_reason: str, double: Double, connect: Client) -> None:
    double.script(Reply((), stop_reason))
    message = await stream(connect(double))
    assert (message.stop_reason, message.content) == (stop_reason, [])


async def test_nuls_and_lone_surrogates_reach_the_client(double: Double, connect: Client) -> None:
    odd = "a\x00b\ud800c"
    double.script(Reply([text(odd), call("t1", "read_file", {odd: odd})]))
    words, fragments = "", ""
    async for event in await connect(double).messages.create(**ask(stream=True)):
        if event.type == "content_block_delta":
            words += event.delta.to_dict().get("text", "")
            fragments += event.delta.to_dict().get("partial_json", "")
    assert words == odd
    assert json.loads(fragments) == {odd: odd}


async def test_the_sdk_takes_nuls_but_no_lone_surrogate_in_a_tool_input(double: Double, connect: Client) -> None:
    double.script(Reply([call("t1", "f", {"a\x00": "\x00"})]), Reply([call("t2", "f", {"a": "\ud800"})]))
    client = connect(double)
    assert (await stream(client)).content[0].to_dict()["input"] == {"a\x00": "\x00"}
    with pytest.raises(ValueError, match="unexpected end of hex escape"):
        await stream(client)


async def test_an_escaped_lone_surrogate_in_a_request_is_refused(double: Double, transport: Any) -> None:
    raw = b'{"model":"claude-sonnet-4-6","max_tokens":9,"messages":[{"role":"user","content":"\\ud800"}]}'
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    answer = await transport.post(f"{double.base_url}/v1/messages", content=raw, headers=headers)
    assert answer.status_code == 400
    assert "The request body is not valid JSON: no low surrogate in string" in answer.json()["error"]["message"]


async def test_an_exhausted_script_says_so(double: Double, connect: Client) -> None:
    double.script(say("one"))
    await stream(connect(double))
    with pytest.raises(anthropic.InternalServerError, match="script of the double is exhausted"):
        await stream(connect(double))
    with pytest.raises(AssertionError, match="no step for request"):
        double.assert_spent()


async def test_a_step_nobody_asked_for_is_reported(double: Double) -> None:
    double.script(say("one"))
    with pytest.raises(AssertionError, match="never asked for"):
        double.assert_spent()
