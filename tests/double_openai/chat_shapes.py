"""The schema of a chat request: fields, types and roles, refused with the API's words."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

from tests.double.errors import Refused

TOP = frozenset(
    "model messages max_tokens max_completion_tokens stream stream_options tools tool_choice parallel_tool_calls user "
    "temperature top_p n stop seed response_format reasoning_effort metadata store".split()
)
# Role -> fields that must be there, fields that may.
FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "system": (frozenset({"content"}), frozenset({"name"})),
    "user": (frozenset({"content"}), frozenset({"name"})),
    "assistant": (frozenset(), frozenset({"content", "tool_calls", "refusal", "name"})),
    "tool": (frozenset({"content", "tool_call_id"}), frozenset()),
}
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
LONGEST_ID = 40
IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,(.+)\Z", re.DOTALL)
PDF = re.compile(r"data:application/pdf;base64,(.+)\Z", re.DOTALL)


def top(body: Mapping[str, Any]) -> None:
    for key in body:
        if key not in TOP:
            raise Refused(f"Unrecognized request argument supplied: {key}")
    if not isinstance(body.get("model"), str):
        raise Refused("you must provide a model parameter")
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise Refused("Invalid 'messages': empty array. Expected an array with minimum length 1.")
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise Refused("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    most = limit(body)
    if type(most) is not int or most < 1:
        raise Refused("Invalid value for 'max_tokens': integer below minimum value. Expected a value >= 1.")
    if body.get("stream_options") is not None and not body.get("stream"):
        raise Refused("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    if not isinstance(body.get("user", ""), str):
        raise Refused("Invalid type for 'user': expected a string.")


def limit(body: Mapping[str, Any]) -> Any:
    return body.get("max_completion_tokens", body.get("max_tokens", 1_000_000))


def message(value: Any, where: str) -> None:
    role = value.get("role") if isinstance(value, dict) else None
    if role not in FIELDS:
        raise Refused(f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user' and 'tool'.")
    required, optional = FIELDS[role]
    for key in value:
        if key != "role" and key not in required and key not in optional:
            raise Refused(f"Unknown parameter: '{where}.{key}'.")
    for key in sorted(required - set(value)):
        raise Refused(f"Missing required parameter: '{where}.{key}'.")
    if role == "assistant":
        assistant(value, where)
    else:
        content(value["content"], f"{where}.content", role)


def content(value: Any, where: str, role: str) -> None:
    if isinstance(value, str):
        if not value.strip():
            raise Refused(f"Invalid '{where}': empty string.")
        return
    if not isinstance(value, list) or not value:
        raise Refused(f"Invalid type for '{where}': expected one of a string or array of objects.")
    for position, part in enumerate(value):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in ("text", "image_url", "file") or (role != "user" and kind != "text"):
            raise Refused(f"Invalid value for '{where}[{position}].type': '{kind}'.")
        PARTS[kind](part, f"{where}[{position}]")


def text(part: Mapping[str, Any], where: str) -> None:
    if set(part) != {"type", "text"} or not isinstance(part["text"], str) or not part["text"].strip():
        raise Refused(f"Invalid '{where}.text': empty string.")


def image(part: Mapping[str, Any], where: str) -> None:
    url = part["image_url"].get("url") if isinstance(part.get("image_url"), dict) else None
    if not isinstance(url, str) or not (url.startswith(("http://", "https://")) or encoded(IMAGE, url)):
        raise Refused(f"Invalid '{where}.image_url'. Expected a valid URL, or a base64-encoded data URL.")


def file(part: Mapping[str, Any], where: str) -> None:
    given = part.get("file")
    if not isinstance(given, dict) or set(given) != {"filename", "file_data"} or not encoded(PDF, given["file_data"]):
        raise Refused(f"Invalid '{where}.file'. Expected a filename and base64-encoded file_data.")


PARTS = {"text": text, "image_url": image, "file": file}


def encoded(pattern: re.Pattern[str], url: str) -> bool:
    found = pattern.match(url)
    try:
        return bool(found and base64.b64decode(found[1], validate=True))
    except binascii.Error:
        return False


def assistant(value: Mapping[str, Any], where: str) -> None:
    calls, words = value.get("tool_calls"), value.get("content")
    if calls is None and not words:
        raise Refused(f"Invalid value for '{where}.content': expected a string, got null.")
    if words is not None:
        content(words, f"{where}.content", "assistant")
    if calls is not None and not (isinstance(calls, list) and calls):
        raise Refused(f"Invalid '{where}.tool_calls': empty array. Expected an array with minimum length 1.")
    for position, call in enumerate(calls or ()):
        tool_call(call, f"{where}.tool_calls[{position}]")


def tool_call(call: Any, where: str) -> None:
    if not isinstance(call, dict) or set(call) != {"id", "type", "function"} or call["type"] != "function":
        raise Refused(f"Invalid '{where}'.")
    if not isinstance(call["id"], str) or not 0 < len(call["id"]) <= LONGEST_ID:
        raise Refused(f"Invalid '{where}.id': string too long. Expected a string with maximum length {LONGEST_ID}.")
    function = call["function"]
    if not NAME.match(function["name"]):
        raise Refused(f"Invalid '{where}.function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.")
    try:
        given = json.loads(function["arguments"])
    except (TypeError, ValueError):
        given = None
    if set(function) != {"name", "arguments"} or not isinstance(given, dict):
        raise Refused(f"Invalid '{where}.function.arguments': expected a JSON object in a string.")


def tools(values: Any) -> None:
    if values is None:
        return
    if not isinstance(values, list) or not values:
        raise Refused("Invalid 'tools': empty array. Expected an array with minimum length 1.")
    for index, value in enumerate(values):
        where = f"tools[{index}]"
        if not isinstance(value, dict) or set(value) != {"type", "function"} or value["type"] != "function":
            raise Refused(f"Invalid value for '{where}.type'. Supported values are: 'function'.")
        function = value["function"]
        if extra := sorted(set(function) - {"name", "description", "parameters", "strict"}):
            raise Refused(f"Unknown parameter: '{where}.function.{extra[0]}'.")
        if not NAME.match(function["name"]):
            raise Refused(f"Invalid '{where}.function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.")
        if function.get("parameters", {}).get("type") != "object":
            raise Refused(f"Invalid schema for function '{function['name']}': schema must be of type 'object'.")
    names = [value["function"]["name"] for value in values]
    if len(set(names)) != len(names):
        raise Refused("Invalid 'tools': tool names must be unique.")
