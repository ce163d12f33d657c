"""How deep JSON is nested. What walks it is recursive."""

from collections.abc import Iterable, Mapping
from typing import Any


def is_deeper(value: Any, levels: int) -> bool:
    """Level by level, so that no nesting is too deep to be measured. What holds nothing is one level."""
    level = [value]
    for _ in range(levels):
        level = [item for outer in level for item in _items(outer)]
        if not level:
            return False
    return True


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()
