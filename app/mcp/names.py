"""Names of tools as a model sees them: `mcp__<server>__<tool>`, within what the provider allows."""

from app.conversation.tool_names import fitted
from app.conversation.tool_servers import ToolServer


def exposed(server: ToolServer, tool: str) -> str:
    """Of this tool alone: what else the server lists, and in which order, does not matter."""
    return fitted(server.prefix + tool, tool)
