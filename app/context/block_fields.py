"""What a block that a client brings may hold: the fields of each type and of each source, as the provider takes them.

One field too many is refused by the provider on every later turn, so it is never stored. Rule texts name fields and
limits, no content. Whether a text is blank and where a block may stand is judged elsewhere.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.conversation.media import is_base64
from app.conversation.messages import is_blank

USER_KINDS = frozenset({"text", "image", "document"})
MEDIA_TYPES = {
    "image": ("image/jpeg", "image/png", "image/gif", "image/webp"),
    "document": ("application/pdf",),
}
MAX_NAME = 64  # characters of a client's own field name that a fault repeats
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_BREAKPOINT = "cache_control"  # allowed anywhere, and left out before anything is stored


@dataclass(frozen=True, slots=True)
class Fault:
    """`place`: the path of the field, such as `content.0.source.data`."""

    place: str
    rule: str


Check = Callable[[Any, str], Fault | None]


@dataclass(frozen=True, slots=True)
class Shape:
    required: Mapping[str, Check]
    optional: Mapping[str, Check]


def first_fault(blocks: Sequence[Any], place: str, kinds: Collection[str]) -> Fault | None:
    """What is wrong with the first of these blocks that is not one of `kinds` with that kind's fields."""
    for index, block in enumerate(blocks):
        if found := _block(block, f"{place}.{index}", kinds):
            return found
    return None


def _block(block: Any, place: str, kinds: Collection[str]) -> Fault | None:
    if not isinstance(block, Mapping):
        return Fault(place, "must be an object with a type")
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in kinds:
        return Fault(f"{place}.type", f"must be one of {', '.join(sorted(kinds))}")
    found = _fields(block, place, SHAPES[kind], f"a {kind} block")
    if found is None and kind == "tool_result" and block.get("is_error"):
        return error_fault(block.get("content", ""), f"{place}.content")
    return found


def error_fault(content: str | Sequence[Any], place: str) -> Fault | None:
    """Of an error result's content, whose fields are right: the provider takes nothing but text there."""
    blocks = () if isinstance(content, str) else content
    media = next((index for index, block in enumerate(blocks) if block["type"] != "text"), None)
    return None if media is None else Fault(f"{place}.{media}.type", "must be text, since is_error is true")


def _fields(value: Mapping[str, Any], place: str, shape: Shape, name: str) -> Fault | None:
    for key, check in shape.required.items():
        if found := check(value.get(key), f"{place}.{key}"):
            return found
    for key, item in value.items():
        if key in shape.required or key in ("type", _BREAKPOINT):
            continue
        if key not in shape.optional:
            return Fault(f"{place}.{key[:MAX_NAME]}", f"{name} has no such field")
        if found := shape.optional[key](item, f"{place}.{key}"):
            return found
    return None


def _rule(fits: Callable[[Any], bool], words: str) -> Check:
    return lambda value, place: None if fits(value) else Fault(place, f"must be {words}")


def _list_of_objects(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(item, Mapping) for item in value))


def _is_switch(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return value is None
    return value.keys() <= {"enabled"} and isinstance(value.get("enabled", False), bool)


_text = _rule(lambda value: isinstance(value, str), "a string")
_words = _rule(lambda value: isinstance(value, str) and bool(value.strip()), "a string that is not blank")
_text_or_null = _rule(lambda value: value is None or isinstance(value, str), "a string or null")
_object = _rule(lambda value: isinstance(value, Mapping), "an object")
_bool = _rule(lambda value: isinstance(value, bool), "true or false")
_direct = _rule(lambda value: value == {"type": "direct"}, "the direct caller")
_citations = _rule(_list_of_objects, "a list of objects or null")
_switch = _rule(_is_switch, "an object with `enabled`, or null")
_tool_name = _rule(
    lambda value: isinstance(value, str) and _TOOL_NAME.fullmatch(value) is not None, "1 to 128 of a-z A-Z 0-9 _ -"
)
_url = _rule(lambda value: isinstance(value, str) and value.startswith(("https://", "http://")), "an http(s) URL")
_data = _rule(lambda value: isinstance(value, str) and is_base64(value), "base64 without line breaks, not empty")


def _one_of(*allowed: str) -> Check:
    return _rule(lambda value: isinstance(value, str) and value in allowed, f"one of {', '.join(allowed)}")


def _source(sources: Mapping[str, Shape]) -> Check:
    kind_known = _one_of(*sorted(sources))

    def check(value: Any, place: str) -> Fault | None:
        if found := _object(value, place) or kind_known(value.get("type"), f"{place}.type"):
            return found
        return _fields(value, place, sources[value["type"]], f"a {value['type']} source")

    return check


def _blocks_or_text(kinds: Collection[str]) -> Check:
    def check(value: Any, place: str) -> Fault | None:
        if isinstance(value, list):
            return first_fault(value, place, kinds)
        return None if isinstance(value, str) else Fault(place, "must be a string or a list of blocks")

    return check


def _document_content(value: Any, place: str) -> Fault | None:
    """What stands inside a document is neither repaired nor left out, so it must not be blank."""
    if isinstance(value, str):
        return _words(value, place)
    if found := _blocks_or_text({"text", "image"})(value, place):
        return found
    return Fault(place, "must not be blank") if not value or any(map(is_blank, value)) else None


def _of_base64(kind: str) -> Shape:
    return Shape({"media_type": _one_of(*MEDIA_TYPES[kind]), "data": _data}, {})


_URL = Shape({"url": _url}, {})
_IMAGE = {"base64": _of_base64("image"), "url": _URL}
_DOCUMENT = {
    "base64": _of_base64("document"),
    "url": _URL,
    "text": Shape({"media_type": _one_of("text/plain"), "data": _words}, {}),
    "content": Shape({"content": _document_content}, {}),
}
SHAPES: Mapping[str, Shape] = {
    "text": Shape({"text": _text}, {"citations": _citations}),
    "image": Shape({"source": _source(_IMAGE)}, {}),
    "document": Shape(
        {"source": _source(_DOCUMENT)}, {"title": _text_or_null, "context": _text_or_null, "citations": _switch}
    ),
    "tool_use": Shape({"id": _text, "name": _tool_name, "input": _object}, {"caller": _direct}),
    "tool_result": Shape({"tool_use_id": _text}, {"content": _blocks_or_text(USER_KINDS), "is_error": _bool}),
    # Without a signature it is a rule of the transcript that is broken, which a repair mends.
    "thinking": Shape({"thinking": _text}, {"signature": _text}),
    "redacted_thinking": Shape({"data": _text}, {}),
}
KINDS = frozenset(SHAPES)
