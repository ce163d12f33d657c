"""Paths of a session's virtual root. Every path is absolute; the agent writes below /workspace only."""

from enum import StrEnum
from unicodedata import category

from app.errors import BodyTooLarge, PathRefused

MAX_PATH_BYTES = 1024
MAX_NAME_BYTES = 255  # the limit of common file systems
MAX_NAMES = 32  # bounds recursion and open descriptors of a walk
MAX_WORKSPACE_FILE_BYTES = 64 * 1024 * 1024

# Control characters, surrogates (which no file system takes) and line separators (a listing has one line per file).
_UNSAFE = frozenset({"Cc", "Cs", "Zl", "Zp"})


class Area(StrEnum):
    WORKSPACE = "workspace"
    HISTORY = "conversation_history"
    RESULTS = "tool_results"
    MEMORY = "memory"


def parse_path(path: str) -> tuple[Area, tuple[str, ...]]:
    """Splits `/area/name/...` into area and names (none for the area itself).

    Raises PathRefused for a relative path, an unknown area, `..`, unsafe characters, and too long or too deep paths.
    """
    if not path.startswith("/"):
        raise PathRefused("A path starts with one of /workspace, /conversation_history, /tool_results, /memory.")
    if len(path.encode(errors="surrogatepass")) > MAX_PATH_BYTES:
        raise PathRefused(f"A path has at most {MAX_PATH_BYTES} bytes.")
    if any(category(char) in _UNSAFE for char in path):
        raise PathRefused("A path may not contain control characters, line breaks or surrogates.")
    first, *rest = [name for name in path.split("/") if name not in ("", ".")] or [""]
    if len(rest) > MAX_NAMES:
        raise PathRefused(f"A path has at most {MAX_NAMES} names below its area.")
    for name in rest:
        _check_name(name)
    if first not in set(Area):
        raise PathRefused("The areas are /workspace, /conversation_history, /tool_results and /memory.")
    return Area(first), tuple(rest)


def _check_name(name: str) -> None:
    if name == "..":
        raise PathRefused("A path may not contain '..'.")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise PathRefused(f"A file name has at most {MAX_NAME_BYTES} bytes.")


def folder_parts(path: str) -> tuple[str, ...]:
    """Area and names of what is to be listed; none for `/`, which holds the areas. Raises PathRefused."""
    if path.startswith("/") and not path.strip("/"):
        return ()
    area, names = parse_path(path)
    return (area, *names)


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


def check_size(area: Area, size: int) -> None:
    """Raises BodyTooLarge for a workspace file over the limit; files that only the server writes have none."""
    if area is Area.WORKSPACE and size > MAX_WORKSPACE_FILE_BYTES:
        raise BodyTooLarge(f"A file has at most {MAX_WORKSPACE_FILE_BYTES} bytes; this one would have {size}.")
