"""The body on the wire."""

import json

import pytest

from app.conversation.messages import Message, result_block, text_block
from app.conversation.request import Breakpoint, ModelRequest, ToolDefinition
from app.providers.anthropic.encode import encode, encode_for_count

TOOL = ToolDefinition("read_file", "Reads.", {"type": "object", "properties": {"z": {}, "a": {}}})
USE = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"z": 1, "a": 2}}


def request(**changes):
    values = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 1000,
        "user_id": "ses_1",
        "system": (text_block("You help."), text_block("Today.")),
        "tools": (TOOL,),
        "messages": (
            Message("user", (text_block("Xin chào 😀"),)),
            Message("assistant", (USE,)),
            Message("user", (result_block("toolu_1", "ok", False), text_block("go on"))),
        ),
    }
    return ModelRequest(**{**values, **changes})


def test_the_body_says_what_the_request_holds():
    assert json.loads(encode(request(thinking={"type": "enabled", "budget_tokens": 2000}))) == {
        "model": "claude-sonnet-4-6",
        "max_tokens": 1000,
        "stream": True,
        "metadata": {"user_id": "ses_1"},
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "system": [text_block("You help."), text_block("Today.")],
        "tools": [{"name": "read_file", "description": "Reads.", "input_schema": TOOL.input_schema}],
        "messages": [
            {"role": "user", "content": [text_block("Xin chào 😀")]},
            {"role": "assistant", "content": [USE]},
            {"role": "user", "content": [result_block("toolu_1", "ok", False), text_block("go on")]},
        ],
    }


def test_what_is_empty_is_left_out():
    assert set(json.loads(encode(request(system=(), tools=())))) == {
        "model", "max_tokens", "stream", "metadata", "messages",
    }  # fmt: skip


def test_counting_sends_the_same_input_and_no_options():
    whole, counted = json.loads(encode(request())), json.loads(encode_for_count(request()))
    assert counted == {name: whole[name] for name in ("model", "system", "tools", "messages")}


def test_equal_requests_are_equal_bytes_with_keys_as_stored():
    assert encode(request()) == encode(request())
    assert b'"input":{"z":1,"a":2}' in encode(request())
    assert "Xin chào 😀".encode() in encode(request())


def test_more_messages_leave_the_bytes_before_them_alone():
    longer = request(messages=(*request().messages, Message("assistant", (text_block("done"),))))
    assert encode(longer).startswith(encode(request()).removesuffix(b"]}"))


def test_breakpoints_sit_at_their_positions_and_not_in_the_blocks():
    marks = (Breakpoint(None, 0, "1h"), Breakpoint(0, 0), Breakpoint(2, 0), Breakpoint(2, 1))
    given = request(breakpoints=marks)
    body = json.loads(encode(given))
    short, long = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
    assert [block.get("cache_control") for block in body["system"]] == [long, None]
    assert [[block.get("cache_control") for block in message["content"]] for message in body["messages"]] == [
        [short], [None], [short, short],
    ]  # fmt: skip
    assert given == request(breakpoints=marks)
    assert b"cache_control" not in encode(request())


@pytest.mark.parametrize(("value", "sent"), [(2**80, 2**80), ("a\ud800", "a\ufffd")])
def test_what_the_fast_writer_refuses_still_leaves(value, sent):
    odd = {**USE, "input": {"value": value}}
    body = json.loads(encode(request(messages=(Message("assistant", (odd,)),), breakpoints=(Breakpoint(0, 0),))))
    assert body["messages"][0]["content"][0]["input"] == {"value": sent}
