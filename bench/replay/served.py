"""A recording whose tools are on an MCP server, by the official server class: the same calls, the same results."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.lowlevel import Server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent, Tool

from app.conversation.tool_servers import ToolServer
from app.mcp.listing import read_listing
from app.mcp.names import exposed
from app.mcp.results import tool_result
from bench.replay.recordings import Recording
from tests.mcp_server import serving

NAME = "recorded"
_SERVER = ToolServer(NAME, "")


def served_form(recording: Recording) -> Recording:
    """As a session of this server records it: names and results as they come through."""
    return {**recording, "tools": _tools(recording), "turns": [_turn(turn) for turn in recording["turns"]]}


def _tools(recording: Recording) -> list[dict[str, Any]]:
    listed = read_listing(_SERVER, [_tool(tool).model_dump(mode="json", by_alias=True) for tool in recording["tools"]])
    return [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in listed.definitions
    ]


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {**turn, "steps": [_step(step) for step in turn["steps"]]}


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    uses = [{**use, "name": exposed(_SERVER, use["name"])} for use in step["tool_uses"]]
    return {**step, "tool_uses": uses, "tool_results": [_result(result) for result in step["tool_results"]]}


def _result(recorded: Mapping[str, Any]) -> dict[str, Any]:
    made = tool_result(_answer(recorded).model_dump(mode="json", by_alias=True, exclude_none=True))
    return {**recorded, "content": made.content, "is_error": made.is_error}


def _answer(recorded: Mapping[str, Any]) -> CallToolResult:
    content = recorded["content"]
    texts = [content] if isinstance(content, str) else [block.get("text", "[media]") for block in content]
    blocks = [TextContent(type="text", text=text) for text in texts]
    return CallToolResult(content=list(blocks), is_error=bool(recorded["is_error"]))


def _tool(tool: Mapping[str, Any]) -> Tool:
    return Tool(name=tool["name"], description=tool["description"], input_schema=tool["input_schema"])


@asynccontextmanager
async def serve(recording: Recording) -> AsyncIterator[str]:
    """The address of a server that answers each call with the result recorded for the next such one."""
    waiting: dict[str, list[Mapping[str, Any]]] = {}
    for step in (step for turn in recording["turns"] for step in turn["steps"]):
        by_id = {result["tool_use_id"]: result for result in step["tool_results"]}
        for use in step["tool_uses"]:
            waiting.setdefault(_key(use["name"], use["input"]), []).append(by_id[use["id"]])

    async def list_tools(_: Any, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(tool) for tool in recording["tools"]])

    async def call_tool(_: Any, params: CallToolRequestParams) -> CallToolResult:
        return _answer(waiting[_key(params.name, params.arguments or {})].pop(0))

    server: Server[Any] = Server(NAME, on_list_tools=list_tools, on_call_tool=call_tool)
    async with serving(server) as served:
        yield served.url


def _key(name: str, arguments: Any) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True)}"
