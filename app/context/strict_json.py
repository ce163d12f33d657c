"""Frozen values to JSON and back, by their field types. Strict: what is not exactly as written is refused."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

Value = TypeVar("Value")


def write(value: Any) -> Any:
    """Plain JSON data: objects, lists, strings, numbers. A mapping goes as it is, so its bytes stay."""
    if is_dataclass(value):
        return {field.name: write(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    return [write(item) for item in value] if isinstance(value, tuple) else value


def read(kind: type[Value], value: Any) -> Value:
    """A dataclass from an object with exactly its fields. Raises ValueError that names the field, never its value."""
    names = {field.name: field.type for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    check_names(value, frozenset(names))
    return kind(**{name: read_field(name, of, value[name]) for name, of in names.items()})


def check_names(value: Any, names: frozenset[str]) -> None:
    if not isinstance(value, Mapping):
        raise ValueError("is no object")
    if missing := sorted(names - value.keys()):
        raise ValueError(f"{', '.join(missing)} missing")
    if unknown := len(value.keys() - names):
        raise ValueError(f"{unknown} unknown fields")


def read_field(name: str, kind: Any, value: Any) -> Any:
    """A value of the type `kind`. Raises ValueError that names the field."""
    try:
        return _value(kind, value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _value(kind: Any, value: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if value is None else _value(arguments[0], value)
    if origin is tuple:
        return _items(arguments, value)
    if is_dataclass(kind):
        return read(kind, value)  # type: ignore[arg-type]  # never an instance
    return value if origin is Mapping and isinstance(value, Mapping) else _plain(kind, value)


def _items(kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError("is no list")
    if kinds[-1] is Ellipsis:
        return tuple(_value(kinds[0], item) for item in value)
    if len(value) != len(kinds):
        raise ValueError(f"has {len(value)} items, not {len(kinds)}")
    return tuple(_value(kind, item) for kind, item in zip(kinds, value, strict=True))


def _plain(kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, Enum):
        if value not in [member.value for member in kind]:
            raise ValueError("is not known")
        return kind(value)
    if type(value) is kind or (kind is float and type(value) is int):
        return value
    raise ValueError("has the wrong type")
