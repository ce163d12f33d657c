"""Content blocks and thinking for the OpenAPI page. The checks themselves are rules of other rooms, whose error texts
name place and limit; a test holds each schema to its check."""

from typing import Any

from app.context.block_fields import MEDIA_TYPES
from app.sessions.payload import DISPLAYS, MIN_BUDGET, THINKING_KEYS

Schema = dict[str, Any]

# What str.strip() takes off, in full: every engine for regular expressions means something else by \\s.
WHITE = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
NOT_BLANK = f"[^{WHITE}]"
_STRING: Schema = {"type": "string"}
_WORDS: Schema = {"type": "string", "pattern": NOT_BLANK}
_OBJECT: Schema = {"type": "object"}
_TEXT_OR_NULL: Schema = {"anyOf": [_STRING, {"type": "null"}]}
_FULL = "[A-Za-z0-9+/]"
_BASE64: Schema = {
    "type": "string",
    "pattern": f"^(?:{_FULL}{{4}})*(?:{_FULL}{{4}}|{_FULL}{{3}}=|{_FULL}{{2}}==)$",
    "description": "Base64 without line breaks.",
}


def _form(kind: str, required: Schema, optional: Schema | None = None) -> Schema:
    properties = {"type": {"const": kind}, **required, **(optional or {})}
    return {
        "type": "object",
        "properties": properties,
        "required": ["type", *required],
        "additionalProperties": False,
    }


def _block(kind: str, required: Schema, optional: Schema | None = None) -> Schema:
    marked = {**(optional or {}), "cache_control": {"description": "Left out: the server sets its own breakpoints."}}
    return _form(kind, required, marked)


def _source(kind: str, required: Schema) -> Schema:
    return _block(kind, required)


def _of_base64(kind: str) -> Schema:
    return _source("base64", {"media_type": {"enum": list(MEDIA_TYPES[kind])}, "data": _BASE64})


def _any_of(*names: str) -> Schema:
    return {"anyOf": [ref(name) for name in names]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(items: Schema, at_least: int = 0) -> Schema:
    return {"type": "array", "items": items, "minItems": at_least}


_URL = _source("url", {"url": {"type": "string", "pattern": "^https?://"}})
_PLAIN = _source("text", {"media_type": {"const": "text/plain"}, "data": _WORDS})
_PARTS = {"anyOf": [_WORDS, _list(_any_of("WordsBlock", "ImageBlock"), at_least=1)]}
_DOCUMENT = [_of_base64("document"), _URL, _PLAIN, _source("content", {"content": _PARTS})]
_CITATIONS = {"anyOf": [_list(_OBJECT), {"type": "null"}]}
_SWITCH = {
    "anyOf": [
        {"type": "object", "properties": {"enabled": {"type": "boolean"}}, "additionalProperties": False},
        {"type": "null"},
    ]
}
_CALL = {"id": _STRING, "name": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,128}$"}, "input": _OBJECT}
_MEDIA = ("ImageBlock", "DocumentBlock")


def _result(is_error: Schema, *besides_text: str) -> Schema:
    content = {"anyOf": [_STRING, _list(_any_of("TextBlock", *besides_text))]}
    return _block("tool_result", {"tool_use_id": _STRING}, {"content": content, "is_error": is_error})


COMPONENTS: dict[str, Schema] = {
    "TextBlock": _block("text", {"text": _STRING}, {"citations": _CITATIONS}),
    "WordsBlock": _block("text", {"text": _WORDS}, {"citations": _CITATIONS}),
    "ImageBlock": _block("image", {"source": {"anyOf": [_of_base64("image"), _URL]}}),
    "DocumentBlock": _block(
        "document",
        {"source": {"anyOf": _DOCUMENT}},
        {"title": _TEXT_OR_NULL, "context": _TEXT_OR_NULL, "citations": _SWITCH},
    ),
    "ToolUseBlock": _block("tool_use", _CALL, {"caller": _form("direct", {})}),
    "ToolResultBlock": {"anyOf": [_result({"const": False}, *_MEDIA), _result({"type": "boolean"})]},
    "ThinkingBlock": _block("thinking", {"thinking": _STRING}, {"signature": _STRING}),
    "RedactedThinkingBlock": _block("redacted_thinking", {"data": _STRING}),
    "InputBlock": _any_of("WordsBlock", "ImageBlock", "DocumentBlock"),
    "TranscriptBlock": _any_of(
        "TextBlock",
        "ImageBlock",
        "DocumentBlock",
        "ToolUseBlock",
        "ToolResultBlock",
        "ThinkingBlock",
        "RedactedThinkingBlock",
    ),
}

SYSTEM_BLOCKS = _list(ref("TextBlock"), at_least=1)
INPUT_BLOCKS = _list(ref("InputBlock"), at_least=1)
TRANSCRIPT_BLOCKS = _list(ref("TranscriptBlock"))
RESULT_BLOCKS = _list(_any_of("TextBlock", "ImageBlock", "DocumentBlock"))

_THINKING_FIELDS: Schema = {
    "budget_tokens": {"type": "integer", "minimum": MIN_BUDGET, "description": "Below max_tokens."},
    "display": {"enum": list(DISPLAYS)},
}


def _thinking(kind: str) -> Schema:
    own = {name: _THINKING_FIELDS[name] for name in sorted(THINKING_KEYS[kind] - {"type"})}
    required = {name: own.pop(name) for name in list(own) if name == "budget_tokens"}
    return _form(kind, required, own)


THINKING: Schema = {"anyOf": [_thinking(kind) for kind in THINKING_KEYS]}


# A JSON Schema as the provider takes it: of an object, and no choice at the top.
INPUT_SCHEMA: Schema = {
    "type": "object",
    "properties": {"type": {"const": "object"}},
    "required": ["type"],
    "not": {"anyOf": [{"required": [name]} for name in ("oneOf", "allOf", "anyOf")]},
}
