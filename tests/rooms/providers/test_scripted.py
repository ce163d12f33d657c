"""The scripted provider plays what it is told, and says when it is told nothing more."""

import asyncio

import pytest

from app.conversation.messages import Message, text_block
from app.conversation.reply import BlockOpened, Delta, Reply, UsageSeen
from app.conversation.request import ModelRequest
from app.conversation.usage import Usage
from app.errors import ProviderFailure
from app.ports import Capabilities
from app.providers.scripted import ScriptedProvider, ScriptExhausted, call, calls, say, use

FAILED = ProviderFailure("provider_error", "down", transient=True)


def request(text="hi"):
    return ModelRequest("scripted", 100, "ses_1", messages=(Message("user", (text_block(text),)),))


async def items(provider, asked=None):
    return [item async for item in provider.stream(asked or request())]


async def test_a_reply_is_streamed_in_pieces_that_make_it_up():
    text = "a text that is longer than one piece"
    usage, first, *pieces, last = await items(ScriptedProvider(say(text)))
    assert usage == UsageSeen(Usage(input=100, calls=1))
    assert first == BlockOpened(0, {"type": "text"})
    assert len(pieces) == 3
    assert pieces == [Delta(0, "text", text[:16]), Delta(0, "text", text[16:32]), Delta(0, "text", text[32:])]
    assert last == say(text)


async def test_calls_get_ids_that_never_repeat_unless_they_have_one():
    provider = ScriptedProvider(
        calls(use("read_file", {"path": "/workspace/é"}), use("list_files", {})),
        call("list_files", {}),
        call("x", {}, ""),
    )
    first, second, third = [(await items(provider))[-1] for _ in range(3)]
    assert [block["id"] for reply in (first, second, third) for block in reply.content] == [
        "toolu_1_0", "toolu_1_1", "toolu_2_0", "",
    ]  # fmt: skip
    assert first.stop_reason == "tool_use"


async def test_arguments_are_streamed_as_json():
    streamed = await items(ScriptedProvider(call("read_file", {"path": "/workspace/é"})))
    assert streamed[1] == BlockOpened(0, {"type": "tool_use", "id": "toolu_1_0", "name": "read_file"})
    assert "".join(item.text for item in streamed if isinstance(item, Delta)) == '{"path": "/workspace/é"}'


async def test_blocks_without_pieces_open_whole():
    hidden = {"type": "redacted_thinking", "data": "opaque"}
    streamed = await items(ScriptedProvider(Reply((hidden,), "end_turn", Usage(), {})))
    assert streamed[1:-1] == [BlockOpened(0, hidden)]


async def test_every_request_is_kept_and_can_decide_the_step():
    provider = ScriptedProvider(say("a"), lambda asked: say(f"{asked.user_id} again"))
    await items(provider, request("one"))
    last = (await items(provider, request("two")))[-1]
    assert last.content == (text_block("ses_1 again"),)
    assert provider.requests == [request("one"), request("two")]


async def test_an_error_is_raised_where_the_script_has_it():
    provider = ScriptedProvider(FAILED, [BlockOpened(0, {"type": "text"}), Delta(0, "text", "half"), FAILED], say("ok"))
    with pytest.raises(ProviderFailure, match="down"):
        await items(provider)
    stream = provider.stream(request())
    assert [await anext(stream), await anext(stream)] == [BlockOpened(0, {"type": "text"}), Delta(0, "text", "half")]
    with pytest.raises(ProviderFailure, match="down"):
        await anext(stream)
    assert (await items(provider))[-1] == say("ok")


async def test_a_gate_holds_the_reply():
    gate = asyncio.Event()
    stream = ScriptedProvider([Delta(0, "text", "a"), gate, say("a")]).stream(request())
    assert await anext(stream) == Delta(0, "text", "a")
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.set()
    assert await waiting == say("a")


async def test_a_script_that_is_used_up_says_how_long_it_was():
    provider = ScriptedProvider(say("a"), counts=(5,))
    await items(provider)
    with pytest.raises(ScriptExhausted, match="call 2, but 1 steps were scripted"):
        await items(provider)
    assert await provider.count_tokens(request()) == 5
    with pytest.raises(ScriptExhausted, match="count 2, but 1 counts were scripted"):
        await provider.count_tokens(request())


async def test_counting_can_fail_and_capabilities_are_as_told():
    provider = ScriptedProvider(counts=(FAILED,), capabilities=Capabilities(token_counting=True))
    assert provider.capabilities.token_counting
    with pytest.raises(ProviderFailure):
        await provider.count_tokens(request("counted"))
    assert provider.counted == [request("counted")]
