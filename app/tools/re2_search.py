"""The only door to RE2: patterns from a model run in linear time, whatever they are."""

from dataclasses import dataclass
from typing import Any

import re2

from app.errors import InvalidRequest

MAX_PATTERN_CHARS = 1000
# Bounds the compiled program, and so the time per byte when RE2 has to leave its automaton: measured 15 us at worst.
MAX_PROGRAM_BYTES = 1 << 20
_GLOB = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """Finds matches inside single lines of UTF-8 bytes: `^` and `$` are line ends, nothing matches a line break."""

    _compiled: Any

    def find(self, data: bytes, start: int, end: int) -> tuple[int, int] | None:
        """First match in data[start:end] as positions in `data`; other threads run meanwhile."""
        match = self._compiled.search(data, start, end)
        return match.span() if match else None

    def matches_all(self, text: str) -> bool:
        return self._compiled.fullmatch(text) is not None


def compile_pattern(pattern: str) -> Pattern:
    """Raises InvalidRequest."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise InvalidRequest(f"A pattern has at most {MAX_PATTERN_CHARS} characters.")
    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    options.max_mem = MAX_PROGRAM_BYTES
    try:
        re2.compile(pattern, options)  # without the prefix, so that an error quotes what the model wrote
        return Pattern(re2.compile("(?m)" + pattern, options))
    except re2.error as error:
        reason = error.args[0].decode(errors="replace")
        raise InvalidRequest(f"The pattern is not a valid RE2 expression: {reason}.") from None


def compile_glob(glob: str) -> Pattern:
    """`*` and `?` stay inside one name, `**` crosses folders; everything else is literal. Raises InvalidRequest."""
    parts = []
    rest = glob
    while rest:
        token = next((token for token in _GLOB if rest.startswith(token)), rest[0])
        parts.append(_GLOB.get(token) or re2.escape(token))
        rest = rest[len(token) :]
    return compile_pattern("".join(parts))
