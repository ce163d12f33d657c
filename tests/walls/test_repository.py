"""What no file of the repository may hold."""

import re

from tests.walls.sources import ROOT, repository_files, shown

# Written in pieces, so that this file does not find itself.
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:" + "|".join(("ro" + "ot", "wo" + "rk", "Us" + "ers", "ho" + "me")) + r")/")
LOCK_LINE = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+( ; .+)?")


def texts():
    for path in repository_files():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_no_file_names_a_folder_of_one_machine():
    found = [
        f"{shown(path)}:{number}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATHS.search(line)
    ]
    assert found == []


def test_the_lock_file_holds_names_and_versions_only():
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#") and not LOCK_LINE.fullmatch(line)] == []
    assert [line for line in lines if "://" in line] == []


def test_no_file_names_a_package_index():
    words = ("--index" + "-url", "--extra" + "-index", "--find" + "-links", "py" + "pi.org", "python" + "hosted")
    assert [(shown(path), word) for path, text in texts() for word in words if word in text] == []


def test_the_migrations_folder_does_not_shadow_its_library():
    assert list((ROOT / "alembic").rglob("__init__.py")) == []


def test_text_files_end_with_one_line_feed():
    assert [shown(p) for p, text in texts() if text and (not text.endswith("\n") or text.endswith("\n\n"))] == []
