"""One content block while it is being written."""

from collections.abc import Mapping
from typing import Any

from app.conversation.messages import Block
from app.conversation.reply import DeltaKind
from app.providers.wire.wire_json import load_arguments

# What grows, by block type: left out of the block's first form.
_GROWING: Mapping[str, frozenset[str]] = {
    "text": frozenset({"text"}),
    "thinking": frozenset({"thinking", "signature"}),
    "tool_use": frozenset({"input"}),
}
# A delta that is not known may mean anything, so it never changes a block of these types.
_KNOWN = frozenset({*_GROWING, "redacted_thinking", "server_tool_use"})
# What the rest of the server relies on, by block type.
_STRINGS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("name",),
}
# The one type of block (of those we know) that such a delta makes sense for.
_OF: Mapping[str, frozenset[str]] = {
    "text_delta": frozenset({"text"}),
    "citations_delta": frozenset({"text"}),
    "thinking_delta": frozenset({"thinking"}),
    "signature_delta": frozenset({"thinking"}),
    "input_json_delta": frozenset({"tool_use", "server_tool_use"}),
}
_PIECES: Mapping[str, tuple[DeltaKind, str]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("tool_input", "partial_json"),
}


class OpenBlock:
    """A block of an unknown type stays as it came and grows by whatever its deltas hold."""

    def __init__(self, first: Mapping[str, Any]) -> None:
        """Raises KeyError, TypeError or ValueError for a block without what its type must have."""
        self._block = dict(first)
        self._kind: str = _string(self._block["type"])
        for name in _STRINGS.get(self._kind, ()):
            self._block[name] = _string(self._block.get(name) or "")
        if self.is_call:
            self._block["input"] = dict(self._block.get("input") or {})
        self._pieces: dict[DeltaKind, list[str]] = {}

    @property
    def is_text(self) -> bool:
        return self._kind == "text"

    @property
    def is_call(self) -> bool:
        return self._kind == "tool_use"

    @property
    def first_form(self) -> dict[str, object]:
        growing = _GROWING.get(self._kind, frozenset())
        return {name: value for name, value in self._block.items() if name not in growing}

    @property
    def first_piece(self) -> tuple[DeltaKind, str]:
        """What a text or thinking block already holds when it opens; usually nothing."""
        kind: DeltaKind = "thinking" if self._kind == "thinking" else "text"
        value = self._block.get(kind)
        return kind, value if isinstance(value, str) else ""

    def apply(self, delta: Mapping[str, Any]) -> tuple[DeltaKind, str] | None:
        """The piece to show, when there is one. Raises KeyError or TypeError for one that is no part of this block."""
        if self._kind in _KNOWN and self._kind not in _OF.get(delta["type"], _KNOWN):
            raise TypeError("a delta of another type of block")
        if known := _PIECES.get(delta["type"]):
            kind, field = known
            piece = _string(delta[field])
            self._pieces.setdefault(kind, []).append(piece)
            return kind, piece
        if delta["type"] == "citations_delta":
            self._grow("citations", [delta["citation"]])
        elif delta["type"] == "signature_delta":
            self._grow("signature", _string(delta["signature"]))
        elif self._kind not in _KNOWN:
            for name, value in delta.items():
                if name != "type":
                    self._grow(name, value)
        return None

    def _grow(self, name: str, value: Any) -> None:
        """Strings and lists are continued, anything else is replaced."""
        held = self._block.get(name)
        continued = isinstance(value, str | list) and type(held) is type(value)
        self._block[name] = held + value if continued else value

    def close(self) -> tuple[Block | None, str | None]:
        """The block and why its arguments cannot be used. Thinking without a signature would be refused: no block."""
        for kind in ("text", "thinking"):
            if pieces := self._pieces.get(kind):
                self._block[kind] = self._block.get(kind, "") + "".join(pieces)
        if self._kind == "thinking" and not self._block.get("signature"):
            return None, None
        text = "".join(self._pieces.get("tool_input", ()))
        reason = None
        if text.strip():
            self._block["input"], reason = load_arguments(text)
        return self._block, reason if self.is_call else None

    def cut(self, reason: str) -> tuple[Block, str]:
        return {**self._block, "input": {}}, reason


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no string")
    return value
