"""`context/` and `conversation/` take values and return values: same input, same output, on every machine."""

import ast

import pytest

from tests.walls.sources import APP, calls, imported, parsed, python_files, shown

WAITING = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
# Clock, chance, files, logs, processes: what would make an answer depend on more than the arguments.
WORLD = {
    "asyncio", "fileinput", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets", "shutil",
    "socket", "subprocess", "sys", "tempfile", "threading", "time", "uuid", "warnings",
}  # fmt: skip
EFFECTS = {"open", "print", "input", "exec", "eval", "breakpoint"}
CLOCK = (".now", ".utcnow", ".today")
PURE = [path for room in ("context", "conversation") for path in python_files(APP / room)]


def breaches(path):
    found = [f"line {line}: imports {name}" for name, line in imported(path) if name.partition(".")[0] in WORLD]
    found += [f"line {node.lineno}: waits" for node in ast.walk(parsed(path)) if isinstance(node, WAITING)]
    found += [
        f"line {call.lineno}: calls {name}"
        for call, name in calls(parsed(path))
        if name in EFFECTS or name.endswith(CLOCK)
    ]
    return found


@pytest.mark.parametrize("path", PURE, ids=shown)
def test_the_file_neither_waits_nor_touches_the_world(path):
    assert breaches(path) == []


def test_the_wall_sees_each_kind_of_breach(tmp_path):
    path = tmp_path / "impure.py"
    path.write_text("import time\nasync def f(g):\n    await g(open('x'))\n    return datetime.now()\n")
    assert breaches(path) == [
        "line 1: imports time", "line 2: waits", "line 3: waits", "line 4: calls datetime.now", "line 3: calls open",
    ]  # fmt: skip
