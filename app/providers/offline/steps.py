"""What a request asks for, as data: steps in order, and remarks on what was understood but not done."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    LIST = "list"
    READ = "read"
    SEARCH = "search"
    LOCATE = "locate"
    WRITE = "write"
    APPEND = "append"
    REPLACE = "replace"
    COUNT = "count"
    SUMMARIZE = "summarize"


CHANGING = frozenset({Kind.WRITE, Kind.APPEND, Kind.REPLACE})


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do.

    `text`: what to write, to find (in `any_case`) or to replace; `new`: what takes its place. `invented`: how many
    lines of `text` the request did not give. `offset` and `limit`: lines to read, from 1, limit 0 for all; `tail`: only
    the last so many. `source`: number of the step whose outcome is written instead of `text`.
    """

    kind: Kind
    path: str
    folder: bool = False
    text: str = ""
    any_case: bool = False
    new: str = ""
    invented: int = 0
    units: tuple[str, ...] = ()
    offset: int = 1
    limit: int = 0
    tail: int = 0
    source: int | None = None


class Reason(StrEnum):
    UNKNOWN = "unknown"
    CANNOT = "cannot"
    FORBIDDEN = "forbidden"
    WHICH_FILE = "which_file"
    WHICH_TEXT = "which_text"
    TOO_MANY = "too_many"


@dataclass(frozen=True, slots=True)
class Remark:
    """A part of the request that was left undone; `part` is quoted from it."""

    reason: Reason
    part: str


@dataclass(frozen=True, slots=True)
class Plan:
    steps: tuple[Step, ...] = ()
    remarks: tuple[Remark, ...] = ()
