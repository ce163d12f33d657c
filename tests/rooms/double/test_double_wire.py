"""What is on the wire beside the content: framing, headers, endpoints, limits."""

from typing import Any

import anthropic
import pytest

from tests.double.control import Double
from tests.double.server import run_double
from tests.double.steps import Reply, call, say, text, think
from tests.rooms.double.words import Client, ask

HEADERS = {"authorization": "Bearer k", "anthropic-version": "2023-06-01"}

STREAM = """event: message_start
data: {"type":"message_start","message":{"id":"msg_double_000001","type":"message","role":"assistant",\
"model":"claude-sonnet-4-6","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"output_tokens":1,\
"input_tokens":36,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":\
{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"service_tier":"standard"}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"chào "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"bạn"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":36,\
"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":7}}

event: message_stop
data: {"type":"message_stop"}

"""


async def test_a_stream_is_framed_as_the_api_frames_it(transport: Any) -> None:
    async with run_double(delta_chars=5) as double:
        double.script(Reply([text("chào bạn"), call("t1", "f", {"a": 1})]))
        url = f"{double.base_url}/v1/messages?beta=true"
        answer = await transport.post(url, json=ask(stream=True), headers=HEADERS)
        assert answer.text == STREAM
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["request-id"] == "req_double_000001"


async def test_streamed_and_whole_answers_say_the_same(double: Double, connect: Client) -> None:
    client = connect(double)
    reply = Reply([think("hm"), text("reading " * 9), call("t1", "read_file", {"path": "a", "lines": [1, 2.5]})])
    double.script(reply, reply)
    async with client.messages.stream(**ask()) as events:
        streamed = await events.get_final_message()
    whole = await client.messages.create(**ask())
    told = [[part.to_dict() for part in message.content] for message in (streamed, whole)]
    assert told[0] == told[1] == double.requests[0].blocks
    assert streamed.stop_reason == whole.stop_reason == "tool_use"
    assert streamed.usage.to_dict() == whole.usage.to_dict() == double.requests[0].usage


async def test_each_delta_waits_for_the_pace(connect: Client) -> None:
    paced = 0

    async def pace() -> None:
        nonlocal paced
        paced += 1

    async with run_double(pace=pace) as double:
        double.script(say("x" * 50))
        async with connect(double).messages.stream(**ask()) as events:
            assert await events.get_final_text() == "x" * 50
    assert paced == 3


async def test_a_key_is_required(double: Double, transport: Any) -> None:
    answer = await transport.get(f"{double.base_url}/v1/models", headers={})
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")


async def test_models_tell_their_window(double: Double, connect: Client) -> None:
    client = connect(double)
    found = await client.models.retrieve("claude-haiku-4-5-20251001")
    assert (found.max_input_tokens, found.max_tokens) == (200_000, 64_000)
    assert "claude-sonnet-4-6" in [model.id async for model in client.models.list()]
    with pytest.raises(anthropic.NotFoundError, match="model: gpt"):
        await client.models.retrieve("gpt")
    with pytest.raises(anthropic.NotFoundError, match="model: gpt"):
        await client.messages.create(**ask(model="gpt"))


async def test_a_body_over_the_limit_is_refused(connect: Client) -> None:
    async with run_double(max_body_bytes=100_000) as double:
        with pytest.raises(anthropic._exceptions.ContentTooLargeError) as raised:
            await connect(double).messages.create(**ask({"role": "user", "content": "x" * 200_000}))
        assert raised.value.response.json()["error"]["type"] == "request_too_large"


async def test_every_request_is_kept_with_its_purpose(double: Double, connect: Client) -> None:
    client = connect(double)
    double.script(say("main"), say("summary"))
    await client.messages.create(**ask(metadata={"user_id": "ses_1"}))
    await client.messages.create(**ask(tools=[]))
    await client.messages.count_tokens(model="claude-sonnet-4-6", messages=[{"role": "user", "content": "a"}])
    await client.models.list()
    assert [exchange.purpose for exchange in double.requests] == ["main", "summarize", "count", "models"]
    assert double.requests[0].user_id == "ses_1"
    assert double.of("main")[0].body["max_tokens"] == 1000
    assert all(exchange.accepted and exchange.finished for exchange in double.requests)
