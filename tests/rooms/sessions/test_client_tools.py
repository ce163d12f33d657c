"""Tools and approvals that a client declares: what a provider would refuse is refused when the session is opened."""

import pytest

from app.errors import InvalidPayload
from app.sessions.client_tools import MAX_SCHEMA_BYTES
from app.sessions.opening import Opening

MODEL = "claude-sonnet-4-6"
SCHEMA = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
# 64 of them, with their descriptions, have just not too many bytes.
LARGE = {"type": "object", "title": "x" * (MAX_SCHEMA_BYTES - 64)}


def tool(name="ask", schema=SCHEMA):
    return {"name": name, "description": "Asks a person.", "input_schema": schema}


@pytest.mark.parametrize(
    ("tools", "field", "words"),
    [
        ([tool(), tool()], "tools.1.name", "of no other tool"),
        ([tool("read_file")], "tools.0.name", "of no other tool"),
        ([tool("mcp__a__b")], "tools.0.name", "must not begin with mcp__"),
        ([tool(schema={"type": "string"})], "tools.0.input_schema", "its type is object"),
        ([tool(schema={})], "tools.0.input_schema", "its type is object"),
        ([tool(schema={"type": "object", "anyOf": [{}]})], "tools.0.input_schema", "must not have oneOf"),
        ([tool(schema={"type": "object", "properties": {"a b": {}}})], "tools.0.input_schema", "1 to 64 of"),
        ([tool(schema={"type": "object", "properties": {"a": 1}})], "tools.0.input_schema", "at $.properties.a"),
        ([tool(schema={"type": "object", "title": "x" * MAX_SCHEMA_BYTES})], "tools.0.input_schema", "at most 65536"),
        ([tool(f"ask_{n}", LARGE) for n in range(65)], "tools", "at most 4194304"),
    ],
)
async def test_a_tool_that_cannot_be_sent_is_refused_with_its_field_and_limit(sessions, tools, field, words):
    with pytest.raises(InvalidPayload) as refused:
        await sessions.open(Opening("acme", MODEL, tools=tools))
    [error] = refused.value.extra["errors"]
    assert error["field"] == field
    assert words in error["rule"]


async def test_tools_up_to_the_limit_of_all_together_are_taken(sessions):
    session, _, _ = await sessions.open(Opening("acme", MODEL, tools=[tool(f"ask_{n}", LARGE) for n in range(64)]))
    assert len(session.settings.tools) == 64


async def test_two_hundred_tools_are_kept_as_they_were_declared(sessions):
    tools = [tool(f"ask_{number}") for number in range(200)]
    session, _, _ = await sessions.open(Opening("acme", MODEL, tools=tools))
    assert session.settings.tools == tools
    assert await sessions.get("acme", session.id) == session


async def test_approvals_name_tools_that_the_session_has(sessions):
    approvals = {"default": None, "tools": {"ask": "always", "read_file": "never", "mcp__any__tool": "unsafe"}}
    session, _, _ = await sessions.open(Opening("acme", MODEL, tools=[tool()], approvals=approvals))
    assert session.settings.approvals == {"tools": approvals["tools"]}
    with pytest.raises(InvalidPayload, match=r"approvals\.tools"):
        await sessions.open(Opening("acme", MODEL, approvals={"tools": {"read_flie": "always"}}))


async def test_the_gauge_counts_a_clients_tools(sessions):
    plain, _, _ = await sessions.open(Opening("acme", MODEL))
    asking, _, _ = await sessions.open(Opening("acme", MODEL, tools=[tool(f"ask_{n}") for n in range(200)]))
    few, many = [(await sessions.context("acme", s.id)).breakdown["tools"] for s in (plain, asking)]
    assert few < 200 < 5000 < many
