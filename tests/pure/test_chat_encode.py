"""Our requests as chat requests."""

import json

import pytest

from app.conversation.messages import Message, result_block, text_block
from app.conversation.request import ModelRequest, ToolDefinition
from app.providers.openai.dialect import SHORT_ID, Dialect
from app.providers.openai.encode import encode

PLAIN = Dialect(("max_tokens",))
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
PDF = {
    "type": "document",
    "title": "plan",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def use(name: str, call_id: str, **given):
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def sent(*messages: Message, dialect: Dialect = PLAIN, **values):
    return json.loads(encode(ModelRequest("m", 100, "ses_1", messages=messages, **values), dialect))


def chat(*messages: Message, dialect: Dialect = PLAIN):
    return sent(*messages, dialect=dialect)["messages"]


def user(*blocks):
    return Message("user", tuple(text_block(block) if isinstance(block, str) else block for block in blocks))


def assistant(*blocks):
    return Message("assistant", tuple(text_block(block) if isinstance(block, str) else block for block in blocks))


def test_a_request_has_what_the_api_knows_and_nothing_else():
    tool = ToolDefinition("read", "Reads.", {"type": "object"})
    body = sent(
        user("hi"), system=(text_block("You help."), text_block("Today.")), tools=(tool,),
        thinking={"type": "adaptive"},
    )  # fmt: skip
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": "You help.\n\nToday."}, {"role": "user", "content": "hi"}],
        "max_tokens": 100,
        "stream": True,
        "tools": [
            {
                "type": "function",
                "function": {"name": "read", "description": "Reads.", "parameters": {"type": "object"}},
            }
        ],
        "stream_options": {"include_usage": True},
        "user": "ses_1",
    }
    assert "tools" not in sent(user("hi"))


def test_each_result_is_a_message_in_call_order_and_what_follows_is_one_user_message():
    batch = assistant("look", use("read", "t1", path="ä"), use("list", "t2"), use("shot", "t3"))
    results = user(
        result_block("t1", "text", False), result_block("t2", "no such folder", True),
        result_block("t3", [text_block("a dot"), IMAGE], False), "and now?",
    )  # fmt: skip
    call = {"id": "t1", "type": "function", "function": {"name": "read", "arguments": '{"path":"ä"}'}}
    first, *others = chat(batch, results)
    assert first["content"] == "look"
    assert first["tool_calls"][0] == call
    assert others == [
        {"role": "tool", "tool_call_id": "t1", "content": "text"},
        {"role": "tool", "tool_call_id": "t2", "content": "Error: no such folder"},
        {"role": "tool", "tool_call_id": "t3", "content": "a dot\n\n(1 shown in the next user message)"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "From the result of call t3:"},
                PICTURE,
                {"type": "text", "text": "and now?"},
            ],
        },
    ]


@pytest.mark.parametrize("content", ["", [], None, [text_block(" ")]])
def test_an_empty_result_says_so(content):
    assert chat(assistant(use("a", "t1")), user(result_block("t1", content, False)))[1]["content"] == "(no output)"


def test_neighbours_of_one_role_are_one_message():
    assert chat(user("head"), user("task", " ")) == [{"role": "user", "content": "head\n\ntask"}]


def test_thinking_is_left_out_and_a_message_of_it_alone_with_it():
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert chat(user("a"), assistant(thinking), user("b")) == [{"role": "user", "content": "a\n\nb"}]
    [_, said] = chat(user("a"), assistant(thinking, use("a", "t1")))
    assert said["content"] is None


def test_pictures_and_documents_are_parts():
    text = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}
    linked = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    [message] = chat(user("see", IMAGE, linked, PDF, text))
    assert message["content"] == [
        {"type": "text", "text": "see"},
        PICTURE,
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,aGk="}},
        {"type": "text", "text": "document:\nwords"},
    ]


def test_what_a_model_cannot_see_is_named():
    dialect = Dialect((), images=False, files=False, usage=False, user=False)
    body = sent(user("see", IMAGE, PDF), dialect=dialect)
    [message] = body["messages"]
    assert message["content"].startswith("see\n\n[an image, not shown")
    assert "[the document plan, not shown" in message["content"]
    assert set(body) == {"model", "messages", "stream"}


@pytest.mark.parametrize(("limit", "chars"), [(40, 64), (SHORT_ID, 22)])
def test_an_id_that_the_server_would_refuse_is_replaced_the_same_in_call_and_result(limit, chars):
    dialect = Dialect(("max_tokens",), id_chars=limit)
    asked, result = chat(
        assistant(use("a", "x" * chars)), user(result_block("x" * chars, "ok", False)), dialect=dialect
    )
    assert asked["tool_calls"][0]["id"] == result["tool_call_id"]
    assert len(result["tool_call_id"]) == limit
    assert result["tool_call_id"].isalnum()


@pytest.mark.parametrize(
    ("name", "shown"), [("functions.read", "functions_read"), ("", "unnamed"), ("a" * 99, "a" * 64)]
)
def test_a_name_that_a_model_made_up_is_sent_in_a_form_that_is_taken(name, shown):
    assert chat(assistant(use(name, "t1")))[0]["tool_calls"][0]["function"]["name"] == shown


def test_numbers_and_text_of_any_kind_can_be_sent():
    body = sent(user("a\ud800b"), assistant(use("a", "t1", n=2**80)))
    assert json.loads(body["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"n": 2**80}
