"""What a server lists, as tool definitions."""

import random

import pytest

from app.conversation.tool_servers import ToolServer
from app.mcp.listing import MAX_DESCRIPTION, read_listing
from app.mcp.names import exposed
from app.mcp.schemas import Unusable, usable
from tests.double.shapes import TOOL_NAME

SERVER = ToolServer("things", "http://127.0.0.1/mcp")


def tool(name: str, **more) -> dict:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


@pytest.mark.parametrize("name", ["add", "a.b/c d", "é" * 70, "x" * 25, "x" * 200, "_x", "\ud800", ""])
def test_every_name_is_legal_and_its_own(name: str):
    shown = exposed(ToolServer("s" * 32, ""), name)
    assert TOOL_NAME.match(shown)
    assert shown == exposed(ToolServer("s" * 32, ""), name)


def test_names_that_look_alike_stay_apart():
    names = ["a.b", "a_b", "a b", "a/b", "x" * 100, "x" * 101]
    listing = read_listing(SERVER, [tool(name) for name in names])
    assert sorted(listing.originals.values()) == sorted(names)
    assert listing.originals["mcp__things__a_b"] == "a_b"


def test_the_order_of_the_list_does_not_matter():
    tools = [tool(f"t{number}", description=f"tool {number}") for number in range(200)]
    tools += [tool("t1", description="another of the name"), tool("t.1")]
    shuffled = random.Random(1).sample(tools, len(tools))
    assert read_listing(SERVER, tools) == read_listing(SERVER, shuffled)
    assert len(read_listing(SERVER, tools).definitions) == 201


def test_an_allowed_tool_that_is_not_listed_is_warned_of(caplog: pytest.LogCaptureFixture):
    chosen = ToolServer("things", "http://127.0.0.1/mcp", allowed_tools=("add", "ad\nd"))
    assert list(read_listing(chosen, [tool("add"), tool("other")]).originals.values()) == ["add"]
    assert "things does not list 1 of its allowed_tools" in caplog.text


def test_a_description_is_cleaned_and_bounded():
    [definition] = read_listing(SERVER, [tool("t", description="a\x00b" + "c" * 10_000)]).definitions
    assert definition.description.startswith("a\ufffdb")
    assert len(definition.description) < MAX_DESCRIPTION + 10


@pytest.mark.parametrize(
    "schema",
    [
        None, [], "object", {"type": "array"}, {"type": "object", "properties": {"a b": {}}},
        {"type": "object", "properties": {"x" * 65: {}}}, {"type": "object", "properties": {"x": 3}},
        {"type": "object", "description": "x" * 40_000}, {"type": ["object", "null"]},
        __import__("functools").reduce(lambda inner, _: {"properties": {"a": inner}}, range(60), {}),
    ],
)  # fmt: skip
def test_a_schema_that_no_provider_takes_leaves_the_tool_out(schema):
    listing = read_listing(SERVER, [tool("good"), {"name": "bad", "inputSchema": schema}])
    assert [definition.name for definition in listing.definitions] == ["mcp__things__good"]


def test_alternatives_at_the_top_become_one_object():
    schema = {
        "properties": {"kind": {"type": "string"}},
        "required": ["kind"],
        "oneOf": [
            {"properties": {"a": {"type": "integer"}, "both": {}}, "required": ["a", "both"]},
            {"properties": {"b": {"type": "string"}, "both": {}}, "required": ["b", "both"]},
        ],
        "allOf": [{"properties": {"c": {}}, "required": ["c"]}],
    }
    made = usable(schema)
    assert made.keys() == {"type", "properties", "required"}
    assert made["properties"].keys() == {"kind", "a", "b", "both", "c"}
    assert made["required"] == ["both", "c", "kind"]


def test_a_schema_without_a_type_is_one_of_an_object():
    assert usable({}) == {"type": "object", "properties": {}}
    with pytest.raises(Unusable):
        usable(True)
