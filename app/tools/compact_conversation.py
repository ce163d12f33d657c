"""`compact_conversation`: the model asks for a compaction before its next call."""

from app.conversation.request import ToolDefinition
from app.conversation.tools import ToolRequest, ToolResult

ANSWERS = {
    "": "The conversation will be compacted before your next step. Go on with the task.",
    "asked": "A compaction is already asked for; it comes before your next step.",
    "done": "The conversation was already compacted in this turn.",
}


class CompactConversation:
    definition = ToolDefinition(
        "compact_conversation",
        "Condenses the older part of this conversation into a summary before your next step, to free room. The full"
        " text stays readable under /conversation_history. Use it between tasks, when what came before is done with.",
        {"type": "object", "properties": {}, "additionalProperties": False},
    )
    safe = True

    async def run(self, request: ToolRequest) -> ToolResult:
        return ToolResult(ANSWERS[request.compaction], compacts=not request.compaction)
