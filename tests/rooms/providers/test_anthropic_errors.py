"""Refusals, overloads and lost connections: what is tried again, and what the caller is told."""

import logging

import pytest

from app.conversation.messages import Message, text_block
from app.conversation.reply import Delta, Reply, UsageSeen
from app.conversation.request import Breakpoint
from app.conversation.usage import Usage
from app.errors import ProviderFailure
from app.providers.wire.retry import WAITS_S
from tests.double import steps
from tests.double.steps import Break, HttpError, Tokens
from tests.rooms.providers.anthropic_room import KEY, byte_server, chunked, items, plain, provider_at, request, room

BUSY = HttpError(529, "Overloaded")


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "prompt is too long: 208310 tokens > 200000 maximum", "context_overflow"),
        (400, "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000", "context_overflow"),
        (413, "Request exceeds the maximum size", "context_overflow"),
        (400, "messages.7: some rule that nobody knows", "provider_rejected"),
        (401, "invalid x-api-key", "provider_rejected"),
        (403, "not allowed", "provider_rejected"),
        (404, "model: claude-none", "provider_rejected"),
    ],
)
async def test_a_refusal_is_told_in_the_providers_words_and_not_repeated(status, message, code):
    async with room() as (provider, double, clock):
        double.script(HttpError(status, message))
        with pytest.raises(ProviderFailure) as caught:
            await items(provider)
        failure = caught.value
        assert (failure.code, failure.detail, failure.transient, failure.provider_status) == (
            code,
            message,
            False,
            status,
        )
        assert (len(double.requests), clock.slept) == (1, [])


@pytest.mark.parametrize(
    ("status", "code"),
    [(429, "provider_overloaded"), (529, "provider_overloaded"), (500, "provider_error"), (504, "provider_error")],
)
async def test_what_may_pass_is_tried_again_and_again_then_told(status, code):
    async with room() as (provider, double, clock):
        double.default = HttpError(status, "too many tokens, rate limit")
        with pytest.raises(ProviderFailure) as caught:
            await items(provider)
        assert (caught.value.code, caught.value.transient, caught.value.provider_status) == (code, False, status)
        assert (len(double.requests), clock.slept) == (9, list(WAITS_S))


async def test_two_overloads_before_the_reply_are_not_seen(caplog):
    caplog.set_level(logging.WARNING)
    async with room() as (provider, double, clock):
        double.script(BUSY, BUSY, steps.say("here I am"))
        seen = await items(provider)
        double.assert_spent()
    assert isinstance(seen[0], UsageSeen)
    assert "".join(item.text for item in seen if isinstance(item, Delta)) == "here I am"
    assert seen[-1].usage.calls == 1
    assert clock.slept == [0.5, 1.0]
    assert "model call failed (provider_overloaded), next attempt in 1.0 s" in caplog.text


@pytest.mark.parametrize("place", [0, 1])
async def test_an_error_event_before_any_output_is_not_seen(place):
    """At place 0 the error is the very first event; before the first piece of a text its block has been shown."""
    async with room() as (provider, double, _):
        double.script(steps.say("no", at={place: Break("overloaded_error")}), steps.say("yes"))
        if place:
            with pytest.raises(ProviderFailure):
                await items(provider)
        else:
            assert isinstance((await items(provider))[-1], Reply)
        assert len(double.requests) == 2 - place


async def test_an_attempt_that_reported_usage_and_then_failed_has_its_usage_seen():
    begun = b'event: message_start\ndata: {"message": {"usage": {"input_tokens": %d}}}\n\n'
    failed = b'event: error\ndata: {"error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'
    ended = b'event: message_delta\ndata: {"delta": {"stop_reason": "end_turn"}}\n\nevent: message_stop\ndata: {}\n\n'
    answers = [chunked([begun % 5, failed]), chunked([begun % 7, ended])]
    async with byte_server(lambda number: answers[number - 1]) as wire, provider_at(wire.base_url) as (provider, _):
        seen = await items(provider)
    assert seen == [
        UsageSeen(Usage(input=5, calls=1)),
        UsageSeen(Usage(input=7, calls=1)),
        Reply((), "end_turn", Usage(input=7, calls=1), {}),
    ]


async def test_a_stream_without_an_event_is_tried_again():
    async with room() as (provider, double, _):
        double.script(steps.say("no", at={0: Break("eof")}), steps.say("yes"))
        assert (await items(provider))[-1].content == (text_block("yes"),)


@pytest.mark.parametrize(
    ("headers", "slept"),
    [
        (["retry-after: 7"], [7]),
        (["retry-after-ms: 2500"], [2.5]),
        (["retry-after: Thu, 01 Jan 2026 12:00:30 GMT"], [30]),
        (["retry-after: 0"], [0.5]),
    ],
)
async def test_the_wait_is_the_one_the_provider_asks_for(headers, slept):
    answers = [plain("503 Busy", b"<html>busy</html>", *headers), plain("400 Bad", b"{}")]
    async with (
        byte_server(lambda number: [answers[number - 1]]) as wire,
        provider_at(wire.base_url) as (provider, clock),
    ):
        with pytest.raises(ProviderFailure, match="The provider answered 400"):
            await items(provider)
    assert clock.slept == slept


async def test_a_wait_of_an_hour_ends_the_call_at_once():
    async with room() as (provider, double, clock):
        double.script(HttpError(429, "This day's tokens are spent", retry_after=3600))
        with pytest.raises(ProviderFailure, match=r"asks to wait 3600 s.*This day's tokens are spent") as caught:
            await items(provider)
    assert (caught.value.code, caught.value.transient, clock.slept) == ("provider_overloaded", False, [])


async def test_a_server_that_is_not_there_is_tried_again_then_told():
    async with byte_server(lambda _: []) as wire:
        gone = wire.base_url
    async with provider_at(gone) as (provider, clock):
        with pytest.raises(ProviderFailure, match=r"could not be reached, or hung up \(ConnectError\)") as caught:
            await items(provider)
    assert (caught.value.code, caught.value.provider_status) == ("provider_error", None)
    assert clock.slept == list(WAITS_S)


@pytest.mark.parametrize(("url", "key"), [("localhost:1", KEY), (None, "sk-a\nb"), (None, "")])
async def test_a_bad_address_or_key_is_told_at_once(url, key):
    async with byte_server(lambda _: []) as wire, provider_at(url or wire.base_url, key) as (provider, clock):
        with pytest.raises(ProviderFailure, match="check ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY") as caught:
            await items(provider)
    assert (caught.value.code, clock.slept) == ("provider_rejected", [])


@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [
        (plain("200 OK", b"<html>", "content-type: text/html; charset=utf-8"), 200, "answered text/html instead of an"),
        (plain("200 OK", b"{}", "content-type: application/json"), 200, "answered application/json instead of an"),
        (plain("307 Away", b"", "location: /v1/messages"), None, "redirects without an end"),
        (plain("302 Found", b""), 302, "answered 302"),
    ],
)
async def test_another_kind_of_server_cannot_heal_and_is_told_at_once(answer, status, told):
    async with byte_server(lambda _: [answer]) as wire, provider_at(wire.base_url) as (provider, clock):
        with pytest.raises(ProviderFailure, match=told) as caught:
            await items(provider)
    assert (caught.value.transient, caught.value.provider_status, clock.slept) == (False, status, [])


async def test_a_key_is_never_in_what_is_told():
    async with room() as (provider, double, _):
        double.script(HttpError(401, f"Incorrect API key provided: {KEY}."))
        with pytest.raises(ProviderFailure) as caught:
            await items(provider)
        assert double.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert caught.value.detail == "Incorrect API key provided: [key]."
    assert caught.value.__cause__ is None


async def test_breakpoints_are_on_the_wire_and_legal():
    asked = request(
        system=(text_block("You help."), text_block("Today.")),
        messages=(Message("user", (text_block("a"), text_block("b"))),),
        breakpoints=(Breakpoint(None, 0, "1h"), Breakpoint(0, 1)),
    )
    async with room() as (provider, double, _):
        double.script(steps.say("ok"))
        await items(provider, asked)
        body = double.requests[0].body
    assert body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert "cache_control" not in body["system"][1]
    assert [block.get("cache_control") for block in body["messages"][0]["content"]] == [None, {"type": "ephemeral"}]
    assert body["metadata"] == {"user_id": "ses_1"}


async def test_tokens_are_counted_once_without_retries():
    async with room() as (provider, double, clock):
        double.script(Tokens(1234), BUSY, purpose="count")
        assert await provider.count_tokens(request()) == 1234
        with pytest.raises(ProviderFailure) as caught:
            await provider.count_tokens(request())
        assert (len(double.of("count")), clock.slept) == (2, [])
    assert caught.value.code == "provider_overloaded"


async def test_a_models_limits_are_asked_for():
    async with room() as (provider, _, _):
        assert await provider.retrieve_model("claude-sonnet-4-5") == (200_000, 64_000)
        assert await provider.retrieve_model("claude-none") is None


async def test_the_sdk_can_be_imported_before_the_first_call():
    async with room() as (provider, double, _):
        await provider.warm_up()
        double.script(steps.say("ok"))
        assert isinstance((await items(provider))[-1], Reply)
