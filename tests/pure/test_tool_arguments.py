import pytest

from app.conversation.request import ToolDefinition
from app.conversation.tools import ToolRequest, ToolResult
from app.errors import FileMissing, StartupError
from app.tools.argument_check import argument_fault
from app.tools.registry import Registry
from app.tools.schema import define, flag, integer, text

DEFINITION = define(
    "probe",
    "Looks.",
    ["path"],
    path=text("A path.", minLength=1),
    limit=integer("A count.", minimum=1, maximum=9),
    deep=flag("All."),
)


class Probe:
    def __init__(self, definition: ToolDefinition = DEFINITION) -> None:
        self.definition, self.safe, self.ran = definition, True, 0

    async def run(self, request: ToolRequest) -> ToolResult:
        self.ran += 1
        if request.arguments["path"] == "gone":
            raise FileMissing("There is no such file.")
        return ToolResult(request.arguments["path"])


def call(name, **arguments):
    return ToolRequest("ses_1", "run_1", "toolu_1", name, arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "'path' is missing"),
        ({"path": 3}, "'path' must be a string"),
        ({"path": None}, "'path' must be a string"),
        ({"path": ""}, "'path' needs at least 1"),
        ({"path": "a", "limit": "3"}, "'limit' must be an integer"),
        ({"path": "a", "limit": True}, "'limit' must be an integer"),
        ({"path": "a", "limit": 1.5}, "'limit' must be an integer"),
        ({"path": "a", "limit": 0}, "'limit' must be at least 1"),
        ({"path": "a", "limit": 10}, "'limit' must be at most 9"),
        ({"path": "a", "deep": 1}, "'deep' must be true or false"),
        ({"path": "a", "secret-name": 1}, "unknown argument; the arguments are: path, limit, deep"),
    ],
)
def test_a_fault_names_the_argument_and_its_limit(arguments, words):
    fault = argument_fault(DEFINITION.input_schema, arguments)
    assert fault is not None
    assert words in fault
    assert "secret" not in fault


def test_arguments_that_fit_have_no_fault():
    assert argument_fault(DEFINITION.input_schema, {"path": "a", "limit": 9, "deep": False}) is None


def test_a_schema_that_allows_more_takes_what_it_does_not_know():
    schema = {"type": "object", "properties": {"n": {"type": "number"}, "x": {}}}
    assert argument_fault(schema, {"n": 1.5, "x": [], "other": 1}) is None


async def test_definitions_come_in_name_order_whatever_the_order_of_the_tools():
    tools = [Probe(define(name, "Looks.", [], path=text("A path."))) for name in ("b", "c", "a")]
    assert [definition.name for definition in Registry(tools).definitions] == ["a", "b", "c"]
    assert Registry(tools).definitions == Registry(tools[::-1]).definitions


async def test_a_clients_tools_stand_among_the_others_in_name_order_whoever_came_first():
    own, asked = Registry([Probe()]), [ToolDefinition(name, "Asks.", {"type": "object"}) for name in ("z", "a")]
    both = own.with_client(asked)
    assert [definition.name for definition in both.definitions] == ["a", "probe", "z"]
    assert both.definitions == own.with_client(asked[::-1]).definitions
    assert (both.get("a"), both.client) == (None, {"a", "z"})
    assert own.with_client(()) is own


async def test_a_clients_tool_is_not_taken_over_by_a_later_one_of_the_server():
    client = ToolDefinition("probe", "Asks a person.", {"type": "object"})
    registry = Registry([Probe()]).with_client([client])
    assert registry.definitions == (client,)
    assert registry.get("probe") is None


def test_a_name_used_twice_stops_the_start():
    with pytest.raises(StartupError):
        Registry([Probe(), Probe()])


async def test_arguments_are_checked_before_the_tool_runs():
    probe = Probe()
    result = await Registry([probe]).run(call("probe", path=3))
    assert result == ToolResult("The argument 'path' must be a string.", is_error=True)
    assert probe.ran == 0


async def test_an_unknown_tool_and_a_known_error_are_error_results():
    registry = Registry([Probe()])
    assert registry.get("prob") is None
    unknown = await registry.run(call("prob", path="a"))
    assert unknown == ToolResult("There is no tool of this name; the tools are: probe.", is_error=True)
    assert await registry.run(call("probe", path="gone")) == ToolResult("There is no such file.", is_error=True)
    assert await registry.run(call("probe", path="a")) == ToolResult("a")
