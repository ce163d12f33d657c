"""Paths of a session's virtual root. Every path is absolute; the agent writes below /workspace only."""

from enum import StrEnum

from app.errors import PathRefused

MAX_PATH_BYTES = 1024
MAX_NAME_BYTES = 255  # the limit of common file systems


class Area(StrEnum):
    WORKSPACE = "workspace"
    HISTORY = "conversation_history"
    RESULTS = "tool_results"
    MEMORY = "memory"


def parse_path(path: str) -> tuple[Area, tuple[str, ...]]:
    """Splits `/area/name/...` into area and names (none for the area itself).

    Raises PathRefused for a relative path, an unknown area, `..`, control characters and names or paths that are too long.
    """
    if not path.startswith("/"):
        raise PathRefused("A path starts with one of /workspace, /conversation_history, /tool_results, /memory.")
    if len(path.encode()) > MAX_PATH_BYTES:
        raise PathRefused(f"A path has at most {MAX_PATH_BYTES} bytes.")
    first, *rest = [name for name in path.split("/") if name not in ("", ".")] or [""]
    for name in rest:
        _check_name(name)
    if first not in set(Area):
        raise PathRefused("The areas are /workspace, /conversation_history, /tool_results and /memory.")
    return Area(first), tuple(rest)


def _check_name(name: str) -> None:
    if name == "..":
        raise PathRefused("A path may not contain '..'.")
    if any(ord(char) < 32 or ord(char) == 127 for char in name):
        raise PathRefused("A path may not contain control characters.")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise PathRefused(f"A file name has at most {MAX_NAME_BYTES} bytes.")


def writable(path: str) -> tuple[str, ...]:
    """The names below /workspace; raises PathRefused for every other area and for /workspace itself."""
    area, names = parse_path(path)
    if area is not Area.WORKSPACE:
        raise PathRefused(f"/{area} is read-only; write below /workspace.")
    if not names:
        raise PathRefused("/workspace is a folder; name a file below it.")
    return names


def canonical(area: Area, names: tuple[str, ...]) -> str:
    return "/" + "/".join((area, *names))
