"""Whether a value has the shape of a JSON Schema (draft 2020-12), as far as a provider refuses one that has not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from app.context.block_fields import MAX_NAME, Fault

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_ONE = frozenset("items additionalProperties contains propertyNames not if then else unevaluatedItems".split())
_MANY = frozenset("oneOf anyOf allOf prefixItems".split())
_NAMED = frozenset("properties patternProperties dependentSchemas $defs definitions".split())


def _is_type(value: Any) -> bool:
    several = isinstance(value, Sequence) and not isinstance(value, str)
    names = list(value) if several else [value]
    return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names) and _unlike(names)


def _unlike(names: Sequence[Any]) -> bool:
    return len(set(names)) == len(names)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value) and _unlike(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_COUNTS = "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains".split()
_NUMBERS = "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf".split()
_TEXTS = "$ref $id $anchor $comment title description pattern format".split()
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_is_type, f"one of {', '.join(_TYPES)}, or a list of such"),
    "required": (_is_names, "a list of names, each once"),
    "enum": (lambda value: isinstance(value, list) and bool(value), "a list of values, not empty"),
    **dict.fromkeys(_COUNTS, (_is_count, "a whole number, 0 or more")),
    **dict.fromkeys(_NUMBERS, (_is_number, "a number")),
    **dict.fromkeys(_TEXTS, (lambda value: isinstance(value, str), "a string")),
    **dict.fromkeys(_NAMED, (lambda value: isinstance(value, Mapping), "an object of schemas by name")),
    **dict.fromkeys(_MANY, (lambda value: isinstance(value, list) and bool(value), "a list of schemas, not empty")),
}


def schema_fault(schema: Any, place: str = "$") -> Fault | None:
    """The first place that is wrong. Keywords that are not known may hold anything. `place`: a path from `$`."""
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, Mapping):
        return Fault(place, "a schema is an object, or true or false")
    for key, value in schema.items():
        fits, words = _RULES.get(key, (_anything, ""))
        if not fits(value):
            return Fault(place, f"{key} is {words}")
        for below, inner in _inner(key, value):
            if fault := schema_fault(inner, f"{place}.{below}"):
                return fault
    return None


def _anything(value: Any) -> bool:
    return True


def _inner(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if key in _ONE:
        yield key, value
    elif key in _MANY:
        yield from ((f"{key}.{index}", item) for index, item in enumerate(value))
    elif key in _NAMED:
        yield from ((f"{key}.{name[:MAX_NAME]}", item) for name, item in value.items())
