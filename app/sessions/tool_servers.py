"""The MCP servers that a client names for its session. No error repeats a value: headers are secrets."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from app.conversation.tool_allow import Allowed
from app.conversation.tool_servers import ToolServer, name_fault
from app.errors import invalid

MAX_SERVERS = 16
MAX_HEADERS = 32
MAX_HEADER_CHARS = 8_192
_HEADER = re.compile(r"[a-zA-Z0-9!#$%&'*+.^_`|~-]{1,128}\Z")
# Set by the client itself: another value would break the exchange, or lead it elsewhere.
_TAKEN = frozenset(
    "host content-length content-type transfer-encoding connection upgrade te trailer expect accept accept-encoding"
    " keep-alive proxy-authorization proxy-connection mcp-session-id mcp-protocol-version last-event-id".split()
)


def read_servers(
    servers: Sequence[Mapping[str, Any]], allowed: Allowed, operators: Collection[str]
) -> tuple[ToolServer, ...]:
    """`operators`: names of servers that every session has. Raises InvalidPayload naming field and rule."""
    read: list[ToolServer] = []
    taken = set(operators)
    for index, value in enumerate(servers):
        server, place = ToolServer.from_json(value), f"mcp_servers.{index}"
        if fault := name_fault(server.name):
            raise invalid(f"{place}.name", fault)
        if server.name in taken:
            raise invalid(f"{place}.name", "must be the name of no other MCP server")
        if fault := allowed.refusal(server.url):
            raise invalid(f"{place}.url", fault)
        if fault := _header_fault(server.headers):
            raise invalid(f"{place}.headers", fault)
        taken.add(server.name)
        read.append(server)
    return tuple(read)


def _header_fault(headers: Mapping[str, str]) -> str | None:
    if len(headers) > MAX_HEADERS:
        return f"must be at most {MAX_HEADERS}"
    if not all(_HEADER.match(name) for name in headers) or len({name.lower() for name in headers}) != len(headers):
        return "must have names that HTTP allows, each once"
    if any(name.lower() in _TAKEN for name in headers):
        return "must not be one that the client sets itself"
    if not all(
        len(value) <= MAX_HEADER_CHARS and value.isascii() and value.isprintable() for value in headers.values()
    ):
        return f"must have values of printable ASCII, at most {MAX_HEADER_CHARS} characters"
    return None
