"""What names a file or folder in a request, and where it lies: a name without a folder is below /workspace."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.providers.offline.lexer import Token, TokenKind
from app.providers.offline.vocabulary import FOLDERS, STOPS

WORKSPACE = "/workspace"
AREAS = (WORKSPACE, "/conversation_history", "/tool_results", "/memory")
_MAX_CHARS = 255
_KNOWN_NAMES = {"README", "LICENSE", "CHANGELOG", "Makefile", "Dockerfile", "Procfile", "Gemfile"}
_NOT_PATHS = {"e.g", "i.e", "a.k.a", "and/or", "he/she", "either/or", "n/a", "w/o", "tl;dr", "/"}
_NAMING = {"called", "named", "tên"}


@dataclass(frozen=True, slots=True)
class Target:
    """`at`: position of its token in the clause."""

    path: str
    folder: bool
    at: int


def path_like(text: str) -> bool:
    if (
        text.lower() in _NOT_PATHS
        or len(text) > _MAX_CHARS
        or any(mark in text for mark in "\n\"'<>|*@=")
        or "://" in text
    ):
        return False
    if text.startswith(("/", "./", "../", "~/")) or text in _KNOWN_NAMES:
        return True
    return _has_extension(text) or _has_folder(text)


def _has_extension(text: str) -> bool:
    name = text.rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    plain = extension.isascii() and extension.isalnum() and not extension.isdigit()
    return bool(dot) and plain and len(extension) <= 12 and (not stem or stem.strip(".") != "") and " " not in name


def _has_folder(text: str) -> bool:
    parts = text.rstrip("/").split("/")
    return "/" in text and " " not in text and all(part and not part.isdigit() for part in parts)


def absolute(text: str) -> str:
    """The virtual path that the text means. Paths outside of every area are left as they are: the tool says no."""
    path = text.removeprefix("./").rstrip("/") or WORKSPACE
    if path.startswith("/"):
        return path
    return path if path.startswith("~") else WORKSPACE if path in ("workspace", ".") else _below_workspace(path)


def _below_workspace(path: str) -> str:
    return f"/{path}" if path.startswith("workspace/") else f"{WORKSPACE}/{path}"


def targets_in(tokens: Sequence[Token]) -> list[Target]:
    """The bare (unquoted) files and folders a clause names, in order, each once."""
    found: dict[str, Target] = {}
    for at, token in enumerate(tokens):
        if token.kind is not TokenKind.WORD:
            continue
        folder = _is_folder_name(tokens, at)
        if folder or path_like(token.text) or _is_named(tokens, at):
            named = target(token.text, at, folder)
            found.setdefault(named.path, named)
    return list(found.values())


def target(text: str, at: int, folder: bool = False) -> Target:
    path = absolute(text)
    return Target(path, folder or text.endswith("/") or path in AREAS, at)


def _is_named(tokens: Sequence[Token], at: int) -> bool:
    """The word after `called` or `tên (là)`."""
    before = [token.lower for token in tokens[max(0, at - 2) : at]]
    named = before[-1:] and before[-1] in _NAMING
    named = named or (len(before) == 2 and before[0] in _NAMING and before[1] in ("là", "la"))
    return bool(named) and tokens[at] not in STOPS


def _is_folder_name(tokens: Sequence[Token], at: int) -> bool:
    """`workspace`, the word after `folder` or `thư mục`, or the one before `folder`."""
    token = tokens[at]
    if token.lower == "workspace":
        return True
    if token in FOLDERS or token in STOPS:
        return False
    before = tokens[at - 1] if at else None
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    if before and (before.lower in ("folder", "directory") or before.folded == "muc"):
        return path_like(token.text) or token.text.isascii()
    if after and after.lower in ("folder", "directory"):
        return before is not None and before.lower in ("the", "in", "of") and token.lower not in _PLAIN
    return False


_PLAIN = {"whole", "current", "entire", "same", "root", "working", "main", "given", "project"}
