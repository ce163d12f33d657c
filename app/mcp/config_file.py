"""The operator's own MCP servers: processes that this server starts and speaks to over their standard streams.

{"servers": {"<name>": {"command": "...", "args": [...], "env": {...}, "cwd": "...", "allowed_tools": [...]}}}
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.conversation.tool_servers import ToolServer, name_fault
from app.errors import StartupError

FIELDS = {"command", "args", "env", "cwd", "allowed_tools"}


@dataclass(frozen=True, slots=True)
class Command:
    """`server`: the name and tools it has in sessions."""

    server: ToolServer
    command: str
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cwd: str | None


def read_commands(path: Path) -> tuple[Command, ...]:
    """In name order. Raises StartupError, which names no value of the file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise _wrong("cannot be read as a JSON file") from None
    servers = content.get("servers") if isinstance(content, dict) and content.keys() == {"servers"} else None
    if not isinstance(servers, dict):
        raise _wrong('must hold {"servers": {name: ...}} and nothing else')
    return tuple(_command(name, value) for name, value in sorted(servers.items()))


def _command(name: str, value: Any) -> Command:
    if fault := name_fault(name):
        raise _wrong(f"a server's name {fault}")
    if not isinstance(value, dict) or value.keys() - FIELDS:
        raise _wrong(f"{name} may only have {', '.join(sorted(FIELDS))}")
    args, env, allowed = value.get("args", []), value.get("env", {}), value.get("allowed_tools")
    if not isinstance(value.get("command"), str) or not value["command"]:
        raise _wrong(f"{name}.command must be a program")
    if not _strings(args) or not (allowed is None or _strings(allowed)):
        raise _wrong(f"{name}: args and allowed_tools must be lists of strings")
    if not isinstance(env, Mapping) or not _strings(list(env.values())):
        raise _wrong(f"{name}.env must hold strings")
    if not isinstance(value.get("cwd", ""), str):
        raise _wrong(f"{name}.cwd must be a folder")
    server = ToolServer(name, "", {}, None if allowed is None else tuple(allowed))
    return Command(server, value["command"], tuple(args), tuple(env.items()), value.get("cwd"))


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _wrong(rule: str) -> StartupError:
    return StartupError(f"HANGO_MCP_CONFIG: {rule}")
