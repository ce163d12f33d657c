"""Tool calls put together from fragments, whose ids and indexes cannot be relied on.

Servers are known to number all calls 0, to leave index or id out, to give every call one id, to repeat the name with
every fragment, and to send arguments as an object. A fragment continues a call unless something says that it cannot.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.conversation.messages import Block
from app.providers.wire.wire_json import dump, load_arguments

CUT = "cut off by max_tokens"


class PartialCall:
    """`slot`: the index it came with; `place`: of its preview, once it has one."""

    def __init__(self, slot: int | None) -> None:
        self.slot = slot
        self.place: int | None = None
        self.id = self.name = ""
        self._pieces: list[str] = []

    @property
    def arguments(self) -> str:
        return "".join(self._pieces)

    @property
    def is_whole(self) -> bool:
        """It has arguments, and nothing is missing of them."""
        text = self.arguments
        return text.rstrip().endswith("}") and load_arguments(text)[1] is None

    def grow(self, call_id: str, name: str, piece: str) -> None:
        self.id = self.id or call_id
        if name and not self._pieces:
            # The whole name again, or the next piece of it.
            self.name = name if name.startswith(self.name) else self.name + name
        self.name = self.name or name
        if piece:
            self._pieces.append(piece)

    def close(self, cut: bool) -> tuple[Block, str | None]:
        """The block, and why its arguments cannot be used. `cut`: the answer ended here for want of room."""
        given, reason = load_arguments(self.arguments)
        if cut and (reason or not self.arguments.strip()):
            reason = CUT
        return {"type": "tool_use", "id": self.id, "name": self.name, "input": given}, reason


class Calls:
    def __init__(self) -> None:
        self.all: list[PartialCall] = []

    def feed(self, fragments: Sequence[Mapping[str, Any]]) -> Iterable[tuple[PartialCall, str]]:
        """Each call that grew, with the new piece of its arguments."""
        for position, fragment in enumerate(fragments):
            function = fragment.get("function") or {}
            piece, name = _text(function.get("arguments")), _text(function.get("name"))
            call_id, slot = _text(fragment.get("id")), fragment.get("index")
            if type(slot) is not int:
                slot = position if len(fragments) > 1 else None
            call = self._continued(slot, call_id, name)
            if call is None:
                call = PartialCall(slot)
                self.all.append(call)
            call.grow(call_id, name, piece)
            yield call, piece

    def close(self, cut: bool) -> tuple[list[Block], dict[int, str]]:
        """The blocks, and by position why the arguments of one cannot be used."""
        closed = [call.close(cut and call is self.all[-1]) for call in self.all]
        return [block for block, _ in closed], {n: reason for n, (_, reason) in enumerate(closed) if reason}

    def _continued(self, slot: int | None, call_id: str, name: str) -> PartialCall | None:
        """The call that such a fragment belongs to; None when it begins one."""
        found = [call for call in reversed(self.all) if slot is None or call.slot in (slot, None)]
        call = next((each for each in found if call_id and each.id == call_id), found[0] if found else None)
        if call is None or (call_id and call.id and call_id != call.id) or (name and call.is_whole):
            return None
        return call


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else dump(value).decode()
