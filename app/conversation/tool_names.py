"""Names of tools as every provider takes them back: a request with another one is refused as long as it is in view."""

import re
from hashlib import sha256

MAX_NAME = 64  # the shorter limit of the two APIs
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_HASH = 8


def fitted(name: str, meant: str) -> str:
    """The name where it is legal, else a legal one of its own; `meant` tells it from other names."""
    legal = _ILLEGAL.sub("_", name)
    if name and legal == name and len(name) <= MAX_NAME:
        return name
    digest = sha256(meant.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{legal[: MAX_NAME - _HASH - 1]}_{digest}"
