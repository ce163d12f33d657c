"""One call of the adapter over a real socket, from the first byte to the last."""

import asyncio
import subprocess
import sys

import pytest

from app.conversation.messages import Message, text_block
from app.conversation.reply import BlockOpened, Delta, Reply, UsageSeen
from app.conversation.usage import Usage
from app.errors import ProviderFailure
from tests.double import steps
from tests.double.steps import BEFORE_END, BEFORE_STOP, Break, Hold, RawJson
from tests.rooms.providers.anthropic_room import byte_server, chunked, items, provider_at, request, room

EVENTS = (
    'event: message_start\r\ndata: {"x": 1,\r\ndata: "message": {"usage": {"input_tokens": 3}}}\r\n\r\n'
    ": a comment\r\n\r\nevent: ping\r\ndata: {}\r\n\r\n"
    'event: content_block_start\rdata: {"index": 0, "content_block": {"type": "text", "text": ""}}\r\r'
    'event: content_block_delta\ndata: {"index": 0, "delta": {"type": "text_delta", "text": "\\ud800 é 😀"}}\n\n'
    'event: content_block_stop\ndata: {"index": 0}\n\n'
    'event: message_delta\ndata: {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}}\n\n'
    "event: message_stop\ndata: {}\n\n"
).encode()


def test_the_room_is_imported_without_the_sdk():
    code = "import sys, app.providers.anthropic.provider, app.providers.scripted\nprint('anthropic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


async def test_a_reply_is_whole_and_its_pieces_make_it_up():
    blocks = (
        steps.think("Let me see."),
        steps.text("I write it now."),
        steps.call("toolu_1", "write_file", {"path": "a"}),
    )
    async with room() as (provider, double, _):
        double.script(steps.Reply(blocks))
        seen = await items(provider, request(thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=4000))
    reply = seen[-1]
    assert [block["type"] for block in reply.content] == ["thinking", "text", "tool_use"]
    assert reply.content[0]["signature"]
    assert reply.content[1:] == blocks[1:]
    assert (reply.stop_reason, reply.broken) == ("tool_use", {})
    shown = {kind: "".join(item.text for item in seen if isinstance(item, Delta) and item.kind == kind)
             for kind in ("thinking", "text", "tool_input")}  # fmt: skip
    assert shown == {"thinking": "Let me see.", "text": "I write it now.", "tool_input": '{"path":"a"}'}
    assert isinstance(seen[0], UsageSeen)
    assert sum(isinstance(item, Reply) for item in seen) == 1
    assert [item.index for item in seen if isinstance(item, BlockOpened)] == [0, 1, 2]


async def test_usage_is_what_the_window_held():
    usage = {"input_tokens": 27, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 50}
    async with room() as (provider, double, _):
        double.script(steps.say("ok", usage=usage), steps.say("ok", usage={**usage, "cache_read_input_tokens": None}))
        first, second = (await items(provider))[-1].usage, (await items(provider))[-1].usage
    assert (first.total_input, first.calls) == (977, 1)
    assert first.read_ratio == pytest.approx(0.921, abs=0.001)
    assert second.total_input == 77


async def test_any_line_ends_and_any_cut_give_the_same_reply():
    one_by_one = [EVENTS[place : place + 1] for place in range(len(EVENTS))]
    answers = [list(chunked([EVENTS])), list(chunked(one_by_one))]
    async with byte_server(lambda number: answers[number - 1]) as wire, provider_at(wire.base_url) as (provider, _):
        whole, cut = await items(provider), await items(provider)
    assert whole == cut
    assert whole[-1] == Reply((text_block("\ufffd é 😀"),), "end_turn", Usage(input=3, output=4, calls=1), {})


async def test_unstorable_characters_are_replaced_everywhere():
    odd = {"k\x00": "v\ud800", "literal": r"\u0000", "emoji": "😀"}
    async with room() as (provider, double, _):
        double.script(steps.Reply((steps.text("a\x00b\ud800 \\u0000 😀"), steps.call("toolu_1", "write_file", odd))))
        seen = await items(provider)
    text, call = seen[-1].content
    assert text["text"] == "a\ufffdb\ufffd \\u0000 😀"
    assert call["input"] == {"k\ufffd": "v\ufffd", "literal": r"\u0000", "emoji": "😀"}
    assert "".join(item.text for item in seen if isinstance(item, Delta) and item.kind == "text") == text["text"]


async def test_a_call_cut_by_max_tokens_is_marked():
    call = steps.call("toolu_1", "write_file", RawJson('{"path": "/workspace/a", "text": "half'))
    async with room() as (provider, double, _):
        double.script(steps.Reply((call,), stop_reason="max_tokens"))
        reply = (await items(provider))[-1]
    assert reply.content == ({**call, "input": {}},)
    assert (reply.stop_reason, reply.broken) == ("max_tokens", {0: "cut off by max_tokens"})


async def test_a_refusal_is_a_reply():
    async with room() as (provider, double, _):
        double.script(steps.Reply((), stop_reason="refusal"))
        seen = await items(provider)
    assert [type(item) for item in seen] == [UsageSeen, Reply]
    assert (seen[-1].content, seen[-1].stop_reason) == ((), "refusal")


@pytest.mark.parametrize(
    ("place", "stop", "code"),
    [
        (3, Break("overloaded_error"), "provider_overloaded"),
        (2, Break("api_error", half=True), "provider_error"),
        (2, Break("eof", half=True), "provider_error"),
        (2, Break("reset"), "provider_error"),
        (BEFORE_END, Break("eof"), "provider_error"),
        (BEFORE_STOP, Break("eof"), "provider_error"),
    ],
)
async def test_after_output_a_failure_is_left_to_the_caller(place, stop, code):
    async with room() as (provider, double, clock):
        double.script(
            steps.say("a long enough text for three pieces, and then some", at={place: stop}), steps.say("no")
        )
        with pytest.raises(ProviderFailure) as caught:
            await items(provider)
        assert (caught.value.code, caught.value.transient) == (code, True)
        assert (len(double.requests), clock.slept) == (1, [])


async def test_a_stream_that_ends_inside_a_call_is_no_reply():
    call = steps.call("toolu_1", "write_file", {"path": "/workspace/a-rather-long-name"})
    async with room() as (provider, double, _):
        double.script(steps.Reply((call,), at={2: Break("eof")}))
        with pytest.raises(ProviderFailure, match="the stream ended early"):
            await items(provider)


async def test_a_silent_stream_ends():
    async with room(stall_s=0.2) as (provider, double, _):
        double.script(steps.say("a text of several pieces, more than one", at={2: Hold()}))
        with pytest.raises(ProviderFailure, match=r"silent for too long \(ReadTimeout\)") as caught:
            await items(provider)
    assert caught.value.transient


async def test_cancelling_the_call_closes_its_connection():
    hold = Hold()
    async with room() as (provider, double, _):
        double.script(steps.say("a text of several pieces, more than one", at={2: hold}))
        task = asyncio.create_task(items(provider))
        await hold.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(double.requests[0].left.wait(), 5)


async def test_a_consumer_that_stops_closes_the_connection():
    async with room() as (provider, double, _):
        double.script(steps.say("a text of several pieces, more than one", at={2: Hold()}))
        stream = provider.stream(request())
        assert isinstance(await anext(stream), UsageSeen)
        await stream.aclose()
        await asyncio.wait_for(double.requests[0].left.wait(), 5)


async def test_calls_one_after_the_other_share_a_connection_and_equal_ones_their_bytes():
    asked = request(messages=(Message("user", (text_block("Xin chào 😀"),)),))
    async with byte_server(lambda _: chunked([EVENTS])) as wire, provider_at(wire.base_url) as (provider, _):
        for _ in range(3):
            await items(provider, asked)
    assert wire.connections == 1
    assert len(wire.bodies) == 3
    assert len(set(wire.bodies)) == 1
