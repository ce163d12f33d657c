"""The message being written: its text so far, and previews coalesced so that a reader costs little."""

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

from app.conversation.events import Preview, PreviewType
from app.conversation.messages import Block
from app.conversation.reply import Delta, DeltaKind

_TYPES: Mapping[DeltaKind, PreviewType] = {
    "text": PreviewType.TEXT_DELTA,
    "thinking": PreviewType.THINKING_DELTA,
    "tool_input": PreviewType.TOOL_INPUT_DELTA,
}


class OpenMessage:
    """Pieces per block, and those not yet sent. `emit` is called with each preview to send.

    `shown`: a reader may have seen some of it.
    """

    def __init__(self, session_id: str, run_id: str, message_id: str, emit: Callable[[Preview], None]) -> None:
        self.session_id = session_id
        self.message_id = message_id
        self.shown = False
        self._run_id = run_id
        self._emit = emit
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, list[str]] = {}
        self._waiting: list[Delta] = []

    def open_block(self, index: int, block: Block) -> None:
        self._blocks[index] = {key: block[key] for key in ("type", "name") if key in block}
        self._pieces[index] = []

    def add(self, delta: Delta) -> None:
        self.shown = True
        self._waiting.append(delta)

    def flush(self) -> bool:
        """Sends what waits, one preview for neighbouring pieces of one block; False when there was nothing.

        Only what was sent belongs to a snapshot: a reader that joins gets each piece once.
        """
        waiting, self._waiting = self._waiting, []
        for (index, kind), group in groupby(waiting, key=lambda delta: (delta.index, delta.kind)):
            text = "".join(delta.text for delta in group)
            self._pieces[index].append(text)
            self._emit(self._preview(_TYPES[kind], {"index": index, "text": text}))
        return bool(waiting)

    def snapshot(self) -> Preview:
        blocks = [{"index": i, **block, "text": "".join(self._pieces[i])} for i, block in sorted(self._blocks.items())]
        return self._preview(PreviewType.SNAPSHOT, {"blocks": blocks})

    def _preview(self, kind: PreviewType, data: dict[str, Any]) -> Preview:
        return Preview(kind, self.session_id, self._run_id, {"message_id": self.message_id, **data})
