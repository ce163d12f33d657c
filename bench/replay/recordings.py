"""Recorded sessions: where they lie, their tools, and the transcript a session that plays one must end with.

A recording is a JSON object `{id, system, tools, turns: [{user, steps: [{text, tool_uses, tool_results}]}]}`.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.conversation.request import ToolDefinition
from app.conversation.tools import ToolRequest, ToolResult

Recording = Mapping[str, Any]
Block = Mapping[str, Any]
Message = Mapping[str, Any]

# Not HANGO_*: the server refuses settings that it does not know.
FOLDER = "BENCH_TRANSCRIPTS"
BESIDE = Path(__file__).parents[3] / "shared" / "transcripts"


def recordings() -> list[Path]:
    """The files of BENCH_TRANSCRIPTS, or of shared/transcripts beside the clone; empty when there is none."""
    return sorted(Path(os.environ.get(FOLDER) or BESIDE).glob("[0-9][0-9]_*.json"))


def load(path: Path) -> Recording:
    recording: Recording = json.loads(path.read_text("utf-8"))
    return recording


def request_of(turn: Mapping[str, Any]) -> str | list[Block]:
    """What the user said: text or blocks."""
    content: str | list[Block] = turn.get("user_blocks") or turn["user"]
    return content


def reply_of(step: Mapping[str, Any]) -> list[Block]:
    """The assistant's blocks, thinking left out."""
    said = [{"type": "text", "text": step["text"]}] if step["text"] else []
    return said + [
        {"type": "tool_use", "id": use["id"], "name": use["name"], "input": use["input"]} for use in step["tool_uses"]
    ]


def results_of(step: Mapping[str, Any]) -> list[Block]:
    """In call order, as the API wants them and the server stores them."""
    by_id = {result["tool_use_id"]: result for result in step["tool_results"]}
    return [_result(by_id[use["id"]]) for use in step["tool_uses"]]


def _result(recorded: Mapping[str, Any]) -> Block:
    block = {"type": "tool_result", "tool_use_id": recorded["tool_use_id"], "content": recorded["content"]}
    return {**block, "is_error": True} if recorded["is_error"] else block


def messages_of(recording: Recording) -> Iterator[Message]:
    """Every message in order, contents as blocks, thinking left out."""
    for turn in recording["turns"]:
        request = request_of(turn)
        yield {"role": "user", "content": [{"type": "text", "text": request}] if isinstance(request, str) else request}
        for step in turn["steps"]:
            yield {"role": "assistant", "content": reply_of(step)}
            if step["tool_results"]:
                yield {"role": "user", "content": results_of(step)}


class RecordedTool:
    """A tool of the recording: it answers each call with the result that was recorded for its id."""

    safe = True

    def __init__(self, definition: ToolDefinition, results: Mapping[str, Mapping[str, Any]]) -> None:
        self.definition = definition
        self._results = results

    async def run(self, request: ToolRequest) -> ToolResult:
        recorded = self._results[request.tool_use_id]
        return ToolResult(recorded["content"], bool(recorded["is_error"]))


def tools_of(recording: Recording) -> Sequence[RecordedTool]:
    steps = [step for turn in recording["turns"] for step in turn["steps"]]
    results = {result["tool_use_id"]: result for step in steps for result in step["tool_results"]}
    return [RecordedTool(ToolDefinition(**tool), results) for tool in recording["tools"]]
