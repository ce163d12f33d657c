"""A small check of a call's arguments against its tool's schema, in words a model can act on."""

from collections.abc import Mapping
from typing import Any

_NAMES = {"string": "a string", "integer": "an integer", "boolean": "true or false", "number": "a number"}


def argument_fault(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """The first fault, naming the argument and its limit; None when the arguments fit.

    Knows required, additionalProperties, and per property type, minimum, maximum and minLength.
    """
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in arguments:
            return f"The argument '{name}' is missing."
    if schema.get("additionalProperties") is False and set(arguments) - set(properties):
        return f"There is an unknown argument; the arguments are: {', '.join(properties)}."
    faults = (_value_fault(name, properties[name], value) for name, value in arguments.items() if name in properties)
    return next((fault for fault in faults if fault), None)


def _value_fault(name: str, rule: Mapping[str, Any], value: Any) -> str | None:
    kind = rule.get("type")
    if not _is(kind, value):
        return f"The argument '{name}' must be {_NAMES.get(str(kind), f'of type {kind}')}."
    if "minimum" in rule and value < rule["minimum"]:
        return f"The argument '{name}' must be at least {rule['minimum']}."
    if "maximum" in rule and value > rule["maximum"]:
        return f"The argument '{name}' must be at most {rule['maximum']}."
    if isinstance(value, str) and len(value) < rule.get("minLength", 0):
        return f"The argument '{name}' needs at least {rule['minLength']} character(s)."
    return None


def _is(kind: object, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return True
