"""Parts of lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page of a list; `next` is the opaque cursor of the following page, None on the last."""

    data: Sequence[Item]
    next: str | None


@dataclass(frozen=True, slots=True)
class Stretch(Generic[Item]):
    """What follows a place in a list, oldest first: fewer than were asked for where they hold many megabytes, but one
    if there is one. `more`: others follow."""

    rows: Sequence[Item]
    more: bool
