"""What a client says of tools: those that it answers itself, and which calls wait for a person."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from app.context.json_schema import schema_fault
from app.conversation.clean import clean_json
from app.errors import invalid

MAX_TOOLS = 200
MAX_APPROVALS = 500
MAX_DESCRIPTION_CHARS = 10_000
MAX_SCHEMA_BYTES = 65_536
# Of all tools of a session together, which are read with it: more than any model's window takes.
MAX_TOOLS_BYTES = 4 * 2**20
# The shorter limit of the two APIs: a session may go on with another model.
TOOL_NAME = r"^[a-zA-Z0-9_-]{1,64}$"
# Names of tools that a tool server brings: which there are is known only when it is asked.
SERVERS = "mcp__"
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def read_tools(tools: Sequence[Mapping[str, Any]], server_tools: Collection[str]) -> list[dict[str, Any]]:
    """Cleaned, as they are stored. Raises InvalidPayload naming field and limit, for what a provider would refuse."""
    read: list[dict[str, Any]] = []
    taken = set(server_tools)
    held = 0
    for index, tool in enumerate(map(clean_json, tools)):
        name, schema, place = tool["name"], tool["input_schema"], f"tools.{index}"
        held += (schema_bytes := _json_bytes(schema)) + _json_bytes(tool["description"])
        if held > MAX_TOOLS_BYTES:
            raise invalid("tools", f"must have at most {MAX_TOOLS_BYTES} bytes of descriptions and schemas")
        if name in taken or name.startswith(SERVERS):
            whose = f"must not begin with {SERVERS}" if name not in taken else "must be the name of no other tool"
            raise invalid(f"{place}.name", whose)
        if rule := _schema_rule(schema, schema_bytes):
            raise invalid(f"{place}.input_schema", rule)
        taken.add(name)
        read.append({"name": name, "description": tool["description"], "input_schema": schema})
    return read


def _json_bytes(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def _schema_rule(schema: Mapping[str, Any], size: int) -> str | None:
    if size > MAX_SCHEMA_BYTES:
        return f"must have at most {MAX_SCHEMA_BYTES} bytes as JSON"
    if schema.get("type") != "object":
        return "must be the schema of an object: its type is object"
    if schema.keys() & {"oneOf", "allOf", "anyOf"}:
        return "must not have oneOf, allOf or anyOf at its top"
    if fault := schema_fault(schema):
        return f"must be a JSON Schema: {fault.rule}, at {fault.place}"
    if any(not _PROPERTY.fullmatch(name) for name in schema.get("properties", {})):
        return "must name its properties with 1 to 64 of a-z A-Z 0-9 _ . -"
    return None


def read_approvals(approvals: Mapping[str, Any], tools: Collection[str]) -> dict[str, Any]:
    """What is set. Raises InvalidPayload for a tool that the session does not have: a typing error would run it."""
    chosen = {name: value for name, value in approvals.items() if value is not None}
    if any(name not in tools and not name.startswith(SERVERS) for name in chosen.get("tools", {})):
        raise invalid("approvals.tools", "must name tools of the session")
    return chosen
