"""Input schemas as every provider takes them: an object at the top, with its properties, and nothing beside them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from app.conversation.json_depth import is_deeper

MAX_BYTES = 32_768
MAX_DEPTH = 32
CHOICES = ("anyOf", "oneOf", "allOf")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


class Unusable(ValueError):
    """No provider would take the schema; says why."""


def usable(schema: Any) -> dict[str, Any]:
    """The schema, with alternatives at its top merged into one object. Raises Unusable."""
    if not isinstance(schema, Mapping):
        raise Unusable("its schema is no object")
    if is_deeper(schema, MAX_DEPTH):
        raise Unusable(f"its schema is nested over {MAX_DEPTH} deep")
    if len(json.dumps(schema)) > MAX_BYTES:
        raise Unusable(f"its schema has over {MAX_BYTES} bytes")
    found = _merged(schema)
    if found.get("type", "object") != "object":
        raise Unusable("its schema describes no object")
    properties = found.get("properties", {})
    if not isinstance(properties, Mapping) or not all(isinstance(rule, Mapping | bool) for rule in properties.values()):
        raise Unusable("its properties cannot be read")
    if not all(_PROPERTY.fullmatch(name) for name in properties):
        raise Unusable("a property's name is not 1 to 64 of a-z A-Z 0-9 _ . -")
    return {**found, "type": "object", "properties": dict(properties)}


def _merged(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What any alternative may hold is allowed, and what all of them need is required: the server checks the rest."""
    kept = {key: value for key, value in schema.items() if key not in (*CHOICES, "not", "if", "then", "else")}
    for key in CHOICES:
        branches = [_merged(branch) for branch in _list(schema.get(key)) if isinstance(branch, Mapping)]
        if not branches:
            continue
        properties = [branch["properties"] for branch in branches if isinstance(branch.get("properties"), Mapping)]
        own = kept.get("properties", {})
        if isinstance(own, Mapping):
            kept["properties"] = {name: rule for part in (*properties, own) for name, rule in part.items()}
        needed = [set(map(str, _list(branch.get("required")))) for branch in branches]
        more = set.union(*needed) if key == "allOf" else set.intersection(*needed)
        kept["required"] = sorted({*map(str, _list(kept.get("required"))), *more})
    return kept


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
