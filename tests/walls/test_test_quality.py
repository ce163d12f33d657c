"""Tests that can fail, do not wait for the clock, and hardly ever stand in for our own code."""

import ast

from tests.walls.sources import TESTS, calls, cases, dotted, functions, parsed, python_files, shown

MOCKS = {"Mock", "MagicMock", "AsyncMock", "NonCallableMock", "create_autospec", "patch"}
MOCKS_PER_TEST = 0.1
# A wait with a bound fails too, and what is called `check` raises.
EXPECTATIONS = ("raises", "warns", "fail", "wait_for", "check")


def is_mock(name):
    parts = name.split(".")
    return bool(MOCKS & set(parts)) or name in {"monkeypatch.setattr", "monkeypatch.setitem"}


def can_fail(function, path):
    """By itself, or through a function of its own file that it calls."""
    called = {name for _, name in calls(function)}
    return expects(function) or any(expects(other) for other in functions(path) if other.name in called)


def expects(function):
    asserts = any(isinstance(node, ast.Assert) for node in ast.walk(function))
    names = [name.rpartition(".")[2] for _, name in calls(function)]
    return asserts or any(name in EXPECTATIONS or name.startswith("assert_") for name in names)


def waits_for_the_clock(call, name):
    """`time.sleep` at all, and an asyncio or anyio sleep of a number above zero; `sleep(0)` only yields."""
    if name == "time.sleep":
        return True
    value = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else 0
    return name.rpartition(".")[2] == "sleep" and isinstance(value, int | float) and value > 0


def test_every_test_can_fail():
    blind = [f"{shown(p)}::{f.name}" for p in python_files(TESTS) for f in cases(p) if not can_fail(f, p)]
    assert blind == []


def test_no_test_sleeps():
    found = [
        f"{shown(path)}:{call.lineno} {name}"
        for path in python_files(TESTS)
        for call, name in calls(parsed(path))
        if waits_for_the_clock(call, name)
    ]
    assert found == [], "wait for an event or a condition, or move an injected clock"


def test_mocks_are_rare():
    files = python_files(TESTS)
    mocks = [f"{shown(path)}:{call.lineno}" for path in files for call, name in calls(parsed(path)) if is_mock(name)]
    tests = sum(len(cases(path)) for path in files)
    assert len(mocks) <= MOCKS_PER_TEST * tests, mocks


def test_test_files_have_names_of_their_own():
    names = [path.name for path in python_files(TESTS) if path.name.startswith("test_")]
    assert sorted(names) == sorted(set(names))


def test_the_walls_see_what_they_look_for():
    tree = ast.parse("def test_x():\n    time.sleep(n)\n    sleep(0.1)\n    asyncio.sleep(0)\n    mock.patch('y')\n")
    found = [(name, waits_for_the_clock(call, name), is_mock(name)) for call, name in calls(tree)]
    assert found == [
        ("time.sleep", True, False), ("sleep", True, False), ("asyncio.sleep", False, False),
        ("mock.patch", False, True),
    ]  # fmt: skip
    assert not expects(tree)
    assert dotted(ast.parse("a().b", mode="eval").body) == ".b"
