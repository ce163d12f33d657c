"""Names of tools as a model sees them: `mcp__<server>__<tool>`, within what the provider allows."""

import re
from hashlib import sha256

from app.conversation.tool_servers import ToolServer

MAX_NAME = 64
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_HASH = 8


def exposed(server: ToolServer, tool: str) -> str:
    """Of this tool alone: what else the server lists, and in which order, does not matter."""
    name = server.prefix + _ILLEGAL.sub("_", tool)
    if name == server.prefix + tool and len(name) <= MAX_NAME:
        return name
    digest = sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{name[: MAX_NAME - _HASH - 1]}_{digest}"
