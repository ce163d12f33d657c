"""Which call a stored result answers: results are named by their call's row and its position there."""

from collections.abc import Mapping, Sequence

from app.context.blocks import is_hollow, tidy
from app.conversation.messages import StoredMessage, tool_uses

Place = tuple[int, int]
"""(seq of the assistant row, position among its tool_use blocks from 0)."""

Places = Mapping[tuple[int, int], Place]
"""The place of the call that the result at (seq, block index) answers; strays have none."""


def call_places(rows: Sequence[StoredMessage]) -> Places:
    """Pairs as the view does: neighbours count as one message, hollow rows as none, a repeated id pairs in order."""
    places: dict[tuple[int, int], Place] = {}
    calls: dict[object, list[Place]] = {}
    calling = False
    for row in rows:
        if not row.agent_visible:
            continue
        if row.role == "user":
            calling = False
            if calls:
                _take(row, calls, places)
            continue
        uses = tool_uses(row.content)
        if not calling and (uses or not is_hollow(tidy("assistant", row.content))):
            calling, calls = True, {}
        for index, block in enumerate(uses):
            calls.setdefault(block.get("id"), []).append((row.seq, index))
    return places


def _take(row: StoredMessage, calls: Mapping[object, list[Place]], places: dict[tuple[int, int], Place]) -> None:
    for index, block in enumerate(row.content):
        if block.get("type") == "tool_result" and (waiting := calls.get(block.get("tool_use_id"))):
            places[row.seq, index] = waiting.pop(0)
