"""What a server lists, as tool definitions: cleaned, bounded, in an order of its own."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.conversation.clean import clean_json
from app.conversation.request import ToolDefinition
from app.conversation.tool_servers import ToolServer
from app.mcp.names import exposed
from app.mcp.schemas import Unusable, usable

log = logging.getLogger(__name__)

MAX_TOOLS = 1_000
MAX_DESCRIPTION = 4_000  # characters


@dataclass(frozen=True, slots=True)
class Listing:
    """`originals`: the server's own name of each tool, by the name it has here."""

    definitions: tuple[ToolDefinition, ...]
    originals: Mapping[str, str]


def read_listing(server: ToolServer, tools: Sequence[Mapping[str, Any]]) -> Listing:
    """The same for every order of `tools`. What cannot be offered is left out, with a warning in the log."""
    definitions: dict[str, ToolDefinition] = {}
    originals: dict[str, str] = {}
    for tool in sorted(tools, key=_canonical)[:MAX_TOOLS]:
        name = str(tool["name"])
        if server.allowed_tools is not None and name not in server.allowed_tools:
            continue
        shown = exposed(server, name)
        try:
            if shown in definitions:
                raise Unusable("another one has its name")
            definitions[shown] = _definition(shown, tool)
            originals[shown] = name
        except Unusable as error:
            log.warning("a tool of the MCP server %s is left out: %s", server.name, error, extra={"tool": shown})
    if missing := set(server.allowed_tools or ()) - {str(tool["name"]) for tool in tools}:
        log.warning("the MCP server %s does not list %d of its allowed_tools", server.name, len(missing))
    if len(tools) > MAX_TOOLS:
        log.warning("the MCP server %s lists over %d tools: the others are left out", server.name, MAX_TOOLS)
    return Listing(tuple(definitions.values()), originals)


def _canonical(tool: Mapping[str, Any]) -> tuple[str, str]:
    return str(tool["name"]), json.dumps(tool, sort_keys=True)


def _definition(name: str, tool: Mapping[str, Any]) -> ToolDefinition:
    cleaned = clean_json(dict(tool))
    description = str(cleaned.get("description") or cleaned.get("title") or "").strip()
    if len(description) > MAX_DESCRIPTION:
        description = f"{description[:MAX_DESCRIPTION]} [...]"
    return ToolDefinition(name, description, usable(cleaned.get("inputSchema")))
