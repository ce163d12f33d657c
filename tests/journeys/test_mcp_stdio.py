"""A program of the operator's, spoken to over its standard streams, and the example of docs/mcp.md."""

import json
import re
import sys
from pathlib import Path

import pytest

from app.errors import StartupError
from app.mcp.config_file import read_commands
from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.house import Build
from tests.mcp_server import make, serving
from tests.serving import ROOT

PAGE = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
EXAMPLES = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)]


def config(folder: Path, **server) -> Path:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"servers": {"own": server}}), encoding="utf-8")
    return path


@pytest.mark.slow
async def test_every_session_has_the_tools_of_the_operators_program(build: Build, double: Double, tmp_path: Path):
    path = config(
        tmp_path, command=sys.executable, args=["-m", "tests.mcp_server", "stdio"], cwd=str(ROOT),
        allowed_tools=["add", "broken"],
    )  # fmt: skip
    house = await build(double=double, mcp_config=path)
    session = await house.open()
    double.script(
        Reply([call("t1", "mcp__own__add", {"a": 20, "b": 22}), call("t2", "mcp__own__broken", {})]), say("done")
    )
    await house.turn(session)
    [summed, failed] = (await house.messages(session))[2]["content"]
    assert summed["content"] == "42"
    assert failed["is_error"]
    tools = [tool["name"] for tool in double.of("main")[0].body["tools"]]
    assert [name for name in tools if name.startswith("mcp__")] == ["mcp__own__add", "mcp__own__broken"]


async def test_a_session_cannot_take_the_name_of_the_operators_program(build: Build, tmp_path: Path):
    house = await build(mcp_config=config(tmp_path, command="/bin/false"), mcp_allow="127.0.0.1")
    named = {"mcp_servers": [{"name": "own", "url": "http://127.0.0.1/mcp"}]}
    answer = await house.http.post("/v1/sessions", json=named)
    assert answer.json()["errors"][0]["field"] == "mcp_servers.0.name"


async def test_a_program_that_cannot_be_started_leaves_the_turn_alone(build: Build, double: Double, tmp_path: Path):
    house = await build(double=double, mcp_config=config(tmp_path, command="/no/such/program"))
    double.script(say("done"))
    assert (await house.turn(await house.open()))["status"] == "completed"


async def test_the_example_of_the_page_works(build: Build, double: Double):
    house = await build(double=double, mcp_allow="127.0.0.1")
    async with serving(make()) as served:
        posted = EXAMPLES[0]
        posted["mcp_servers"][0]["url"] = served.url
        session = await house.open(**posted)
        double.script(Reply([call("t1", "mcp__things__add", {"a": 1, "b": 2})]), say("done"))
        await house.turn(session)
    assert (await house.messages(session))[2]["content"][0]["content"] == "3"


def test_the_configuration_of_the_page_is_read(tmp_path: Path):
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(EXAMPLES[1]), encoding="utf-8")
    [command] = read_commands(path)
    assert (command.server.name, command.args, command.server.allowed_tools) == ("notes", ("--stdio",), ("search",))


@pytest.mark.parametrize(
    "content",
    [
        "no json",
        "[]",
        "{}",
        '{"servers": []}',
        '{"servers": {}, "more": 1}',
        '{"servers": {"a__b": {"command": "x"}}}',
        '{"servers": {"a": {}}}',
        '{"servers": {"a": {"command": 3}}}',
        '{"servers": {"a": {"command": "x", "url": "y"}}}',
        '{"servers": {"a": {"command": "x", "args": "y"}}}',
        '{"servers": {"a": {"command": "x", "env": {"A": 1}}}}',
        '{"servers": {"a": {"command": "x", "cwd": 1}}}',
        '{"servers": {"a": {"command": "x", "allowed_tools": [1]}}}',
    ],
)
def test_a_wrong_configuration_ends_the_start(tmp_path: Path, content: str):
    path = tmp_path / "mcp.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(StartupError, match="HANGO_MCP_CONFIG"):
        read_commands(path)
