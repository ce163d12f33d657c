"""Every rule of the double of Chat Completions: what breaks it is refused, its legal neighbour is answered."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, DefaultAsyncHttpxClient, NotFoundError

from tests.double.control import Double
from tests.double.steps import BEFORE_END, Break, call, say, think
from tests.double.steps import Reply as Answer
from tests.double_openai.run import run_openai_double

PNG = "data:image/png;base64,aGk="
U = {"role": "user", "content": "a"}


def asks(*ids: str, **changes: Any) -> dict[str, Any]:
    function = {"name": "read", "arguments": "{}"}
    calls = [{"id": each, "type": "function", "function": {**function, **changes}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answers(call_id: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def tool(name: str = "read", **function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}, **function}}


def picture(url: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


# name: (messages and fields that are refused, part of the refusal, their legal neighbour)
RULES: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "an answer to no call": (
        {"messages": [U, answers("t1")]}, "must be a response to a preceeding message",
        {"messages": [U, asks("t1"), answers("t1")]},
    ),
    "a call without an answer": (
        {"messages": [U, asks("t1", "t2"), answers("t1"), U]}, "did not have response messages: t2",
        {"messages": [U, asks("t1", "t2"), answers("t1"), answers("t2"), U]},
    ),
    "an answer given twice": (
        {"messages": [U, asks("t1"), answers("t1"), answers("t1")]}, "must be a response",
        {"messages": [U, asks("t1"), answers("t1")]},
    ),
    "answers out of order": (
        {"messages": [U, asks("t1", "t2"), answers("t2"), answers("t1")]}, "must be a response|call order",
        {"messages": [U, asks("t1", "t2"), answers("t1"), answers("t2")]},
    ),
    "an id used twice": (
        {"messages": [U, asks("t1", "t1"), answers("t1"), answers("t1")]}, "Duplicate value",
        {"messages": [U, asks("t1", "t2"), answers("t1"), answers("t2")]},
    ),
    "a long id": (
        {"messages": [U, asks("x" * 41), answers("x" * 41)]}, "maximum length 40",
        {"messages": [U, asks("x" * 40), answers("x" * 40)]},
    ),
    "a name with a dot": (
        {"messages": [U, asks("t1", name="a.b"), answers("t1")]}, "does not match pattern",
        {"messages": [U, asks("t1", name="a-b"), answers("t1")]},
    ),
    "arguments that are no object": (
        {"messages": [U, asks("t1", arguments="[]"), answers("t1")]}, "expected a JSON object",
        {"messages": [U, asks("t1", arguments='{"a":1}'), answers("t1")]},
    ),
    "an empty text": ({"messages": [{**U, "content": ""}]}, "empty string", {"messages": [U]}),
    "an empty part": (
        {"messages": [{**U, "content": [{"type": "text", "text": " "}]}]}, "empty string",
        {"messages": [{**U, "content": [{"type": "text", "text": "a"}]}]},
    ),
    "an empty answer": (
        {"messages": [U, asks("t1"), answers("t1", "")]}, "empty string", {"messages": [U, asks("t1"), answers("t1")]},
    ),
    "a picture in an answer": (
        {"messages": [U, asks("t1"), answers("t1", picture(PNG)["content"])]}, "type': 'image_url'",
        {"messages": [picture(PNG)]},
    ),
    "a picture that is none": ({"messages": [picture("data:image/png;base64,?")]}, "valid URL",
        {"messages": [picture(PNG)]}),
    "nothing said": (
        {"messages": [U, {"role": "assistant", "content": None}, U]}, "got null",
        {"messages": [U, {"role": "assistant", "content": "b"}, U]},
    ),
    "no calls in a list of calls": (
        {"messages": [U, {"role": "assistant", "content": "b", "tool_calls": []}, U]}, "empty array",
        {"messages": [U, {"role": "assistant", "content": "b"}, U]},
    ),
    "two users in a row": ({"messages": [U, U]}, "must alternate", {"messages": [U]}),
    "the assistant last": (
        {"messages": [U, {"role": "assistant", "content": "b"}]}, "last message", {"messages": [U]},
    ),
    "an unknown role": ({"messages": [{**U, "role": "function"}]}, "Supported values", {"messages": [U]}),
    "a field of another API": (
        {"messages": [{**U, "cache_control": {}}]}, "Unknown parameter", {"messages": [{**U, "name": "ann"}]},
    ),
    "an argument of another API": (
        {"messages": [U], "extra_body": {"metadata_user": 1}}, "Unrecognized request argument",
            {"messages": [U], "user": "s"},
    ),
    "no messages": ({"messages": []}, "minimum length 1", {"messages": [U]}),
    "no tools in a list of tools": ({"messages": [U], "tools": []}, "minimum length 1",
        {"messages": [U], "tools": [tool()]}),
    "one tool twice": (
        {"messages": [U], "tools": [tool(), tool()]}, "unique", {"messages": [U], "tools": [tool(), tool("list")]},
    ),
    "a tool's schema that is no object": (
        {"messages": [U], "tools": [tool(parameters={"type": "string"})]}, "of type 'object'",
        {"messages": [U], "tools": [tool()]},
    ),
    "both limits": ({"messages": [U], "max_completion_tokens": 9}, "at the same time", {"messages": [U]}),
    "a limit above the model's": ({"messages": [U], "max_tokens": 64_001}, "at most 64000",
        {"messages": [U], "max_tokens": 64_000}),
    "a prompt above the window": (
        {"messages": [{**U, "content": "a" * 700_000}]}, "resulted in 233338 tokens",
            {"messages": [{**U, "content": "a" * 500_000}]},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
async def transport() -> AsyncIterator[DefaultAsyncHttpxClient]:
    async with DefaultAsyncHttpxClient(timeout=20) as shared:
        yield shared


@pytest.fixture
async def chat(transport: DefaultAsyncHttpxClient) -> AsyncIterator[tuple[Double, Any]]:
    async with run_openai_double() as double:
        client = AsyncOpenAI(base_url=f"{double.base_url}/v1", api_key="k", max_retries=0, http_client=transport)

        async def ask(**given: Any) -> list[Any]:
            body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "stream": True, **given}
            return [chunk async for chunk in await client.chat.completions.create(**body)]

        yield double, ask


@pytest.mark.parametrize(("broken", "words", "legal"), RULES.values(), ids=RULES)
async def test_a_broken_rule_is_refused_and_its_neighbour_answered(chat, broken, words, legal):
    double, ask = chat
    double.script(say("ok"))
    with pytest.raises(BadRequestError, match=words):
        await ask(**broken)
    assert (await ask(**legal))[-1].choices[0].finish_reason == "stop"
    assert len(double.refused) == 1
    double.assert_spent()


async def test_a_model_that_is_not_served_is_not_found(chat):
    _, ask = chat
    with pytest.raises(NotFoundError):
        await ask(model="other", messages=[U])


async def test_a_reply_is_streamed_as_the_api_does(chat):
    double, ask = chat
    double.script(
        Answer(
            [think("hm"), *say("I read.").blocks, call("t1", "read", {"a": 1})], usage={"cache_read_input_tokens": 5}
        )
    )
    chunks = await ask(messages=[U], stream_options={"include_usage": True})
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "I read."
    pieces = [delta.tool_calls[0] for delta in deltas if delta.tool_calls]
    assert (pieces[0].id, pieces[0].function.name) == ("t1", "read")
    assert "".join(piece.function.arguments for piece in pieces) == '{"a":1}'
    assert chunks[-2].choices[0].finish_reason == "tool_calls"
    assert chunks[-1].usage.prompt_tokens == double.requests[0].input_tokens + 5
    assert chunks[-1].usage.prompt_tokens_details.cached_tokens == 5


async def test_a_break_ends_the_stream_where_the_script_says(chat):
    double, ask = chat
    double.script(say("words", at={BEFORE_END: Break("eof")}))
    assert all(chunk.choices[0].finish_reason is None for chunk in await ask(messages=[U]))
    assert not double.requests[0].finished


async def test_what_was_sent_is_read_in_block_form_too(chat):
    double, ask = chat
    double.script(say("ok"))
    system = {"role": "system", "content": "be"}
    await ask(messages=[system, U, asks("t1"), answers("t1", "Error: no"), picture(PNG)], user="s1", tools=[tool()])
    [exchange] = double.of("main")
    assert exchange.user_id == "s1"
    assert exchange.body["system"] == [{"type": "text", "text": "be"}]
    result, image = exchange.body["messages"][2]["content"]
    assert result == {"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": True}
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert exchange.chat["messages"][0] == system
