"""The schema of a request: fields, types and roles, refused with the texts of the API's own schema layer."""

import re
from collections.abc import Mapping
from typing import Any

from tests.double.errors import Refused

TOP = frozenset(
    "model messages max_tokens system tools tool_choice thinking metadata stop_sequences stream temperature top_p "
    "top_k service_tier output_config cache_control container context_management inference_geo speed "
    "diagnostics".split()
)
COUNT_TOP = TOP - {
    "max_tokens",
    "metadata",
    "stop_sequences",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "service_tier",
}
# Block type -> fields that must be there, fields that may.
BLOCKS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "text": (frozenset({"text"}), frozenset({"cache_control", "citations"})),
    "image": (frozenset({"source"}), frozenset({"cache_control", "transformations"})),
    "document": (frozenset({"source"}), frozenset({"cache_control", "citations", "context", "title"})),
    "search_result": (frozenset({"content", "source", "title"}), frozenset({"cache_control", "citations"})),
    "tool_use": (frozenset({"id", "name", "input"}), frozenset({"cache_control", "caller", "toolset_name"})),
    "tool_result": (frozenset({"tool_use_id"}), frozenset({"cache_control", "content", "is_error", "toolset_name"})),
    "thinking": (frozenset({"thinking", "signature"}), frozenset()),
    "redacted_thinking": (frozenset({"data"}), frozenset()),
}
TOOL = (frozenset({"name", "input_schema"}), frozenset(
    "type description cache_control defer_loading strict allowed_callers eager_input_streaming input_examples".split()
))  # fmt: skip
NESTED = ("text", "image", "document", "search_result")
ONLY = {"tool_use": "assistant", "thinking": "assistant", "redacted_thinking": "assistant", "tool_result": "user"}
STRINGS = frozenset({"text", "id", "name", "tool_use_id", "thinking", "signature", "data"})
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
CALLED_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")


def fields(value: Mapping[str, Any], shape: tuple[frozenset[str], frozenset[str]], where: str) -> None:
    required, optional = shape
    for key in value:
        if key != "type" and key not in required and key not in optional:
            raise Refused(f"{where}.{key}: Extra inputs are not permitted")
    for key in sorted(required):
        if key not in value:
            raise Refused(f"{where}.{key}: Field required")
        if key in STRINGS and not isinstance(value[key], str):
            raise Refused(f"{where}.{key}: Input should be a valid string")
    mark(value, where)


def mark(value: Mapping[str, Any], where: str) -> str | None:
    """The lifetime asked for by cache_control, None without one."""
    control = value.get("cache_control")
    if control is None:
        return None
    if not isinstance(control, dict) or control.get("type") != "ephemeral":
        raise Refused(f"{where}.cache_control: Input tag should be 'ephemeral'")
    if extra := sorted(set(control) - {"type", "ttl"}):
        raise Refused(f"{where}.cache_control.ephemeral.{extra[0]}: Extra inputs are not permitted")
    ttl = control.get("ttl", "5m")
    if ttl not in ("5m", "1h"):
        raise Refused(f"{where}.cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
    return str(ttl)


def block(value: Any, where: str, role: str) -> None:
    """One content block of a message; `where` is `messages.<i>.content.<j>`."""
    kind = str(value.get("type")) if isinstance(value, dict) else ""
    if kind not in BLOCKS:
        tags = ", ".join(f"'{tag}'" for tag in BLOCKS)
        raise Refused(f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}")
    if ONLY.get(kind, role) != role:
        raise Refused(f"{where}: `{kind}` blocks can only be in `{ONLY[kind]}` messages")
    inner = f"{where}.{kind}"
    fields(value, BLOCKS[kind], inner)
    if kind == "tool_use" and not isinstance(value["input"], dict):
        raise Refused(f"{inner}.input: Input should be a valid dictionary")
    if kind == "tool_use" and not CALLED_NAME.match(value["name"]):
        raise Refused(f"{inner}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    identity = {"tool_use": "id", "tool_result": "tool_use_id"}.get(kind)
    if identity and not CALL_ID.match(value[identity]):
        raise Refused(f"{inner}.{identity}: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if kind == "text":
        words(value, where, "messages")
    if kind == "tool_result":
        result(value, inner)


def words(value: Mapping[str, Any], where: str, place: str) -> None:
    if not value["text"] and value.get("cache_control"):
        raise Refused(f"{where}.text: cache_control cannot be set for empty text blocks")
    if not value["text"].strip():
        raise Refused(f"{place}: text content blocks must be non-empty")


def result(value: Mapping[str, Any], where: str) -> None:
    if not isinstance(value.get("is_error", False), bool):
        raise Refused(f"{where}.is_error: Input should be a valid boolean")
    content = value.get("content", "")
    if not isinstance(content, str | list):
        raise Refused(f"{where}.content: Input should be a valid string or list")
    if value.get("is_error") and not content:
        raise Refused(f"{where}: content cannot be empty if `is_error` is true")
    for index, nested in enumerate(content if isinstance(content, list) else ()):
        place = f"{where}.content.{index}"
        if not isinstance(nested, dict) or nested.get("type") not in NESTED:
            raise Refused(f"{place}: Input tag does not match any of the expected tags: {', '.join(NESTED)}")
        block(nested, place, "user")
        if value.get("is_error") and nested["type"] != "text":
            raise Refused(f"{where}: all content must be type `text` if `is_error` is true")


def top(body: Any, counting: bool) -> None:
    """Everything beside tools, system and messages."""
    if not isinstance(body, dict):
        raise Refused("Input should be a valid dictionary")
    for key in body:
        if key not in (COUNT_TOP if counting else TOP):
            raise Refused(f"{key}: Extra inputs are not permitted")
    for key in ("model", "messages") if counting else ("model", "messages", "max_tokens"):
        if key not in body:
            raise Refused(f"{key}: Field required")
    if not counting and (not isinstance(body["max_tokens"], int) or body["max_tokens"] < 1):
        raise Refused("max_tokens: Input should be greater than or equal to 1")
    if not isinstance(body["model"], str):
        raise Refused("model: Input should be a valid string")
    if not isinstance(body["messages"], list):
        raise Refused("messages: Input should be a valid list")
    for key in sorted(set(body.get("metadata") or {}) - {"user_id"}):
        raise Refused(f"metadata.{key}: Extra inputs are not permitted")
