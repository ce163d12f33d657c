"""The repository as the walls see it: its text files, its Python files parsed, its functions."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APP = ROOT / "app"
TESTS = ROOT / "tests"
# Made by tools and ignored by git.
MADE = {".git", ".venv", "__pycache__", "build", "dist"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def repository_files() -> list[Path]:
    return [path for path in _walk(ROOT) if path.is_file()]


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in MADE or path.name.endswith(("_cache", ".egg-info")) or path.name == ".hypothesis":
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        else:
            yield path


def python_files(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders if folder.exists() for path in folder.rglob("*.py"))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions(path: Path) -> list[Function]:
    return [node for node in ast.walk(parsed(path)) if isinstance(node, Function)]


def cases(path: Path) -> list[Function]:
    return [function for function in functions(path) if function.name.startswith("test_")]


def calls(node: ast.AST) -> list[tuple[ast.Call, str]]:
    """Each call below the node with its name as written: `time.sleep`, `open`, `.now` for a computed receiver."""
    return [(item, dotted(item.func)) for item in ast.walk(node) if isinstance(item, ast.Call)]


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imported(path: Path) -> list[tuple[str, int]]:
    """Every module a file imports, in full, with the line."""
    found = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.module or "", node.lineno))
    return found
