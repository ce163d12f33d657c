"""The programs of the learning chapters run, and print the figures that the chapters show."""

import re
import subprocess
import sys

import pytest

from tests.walls.sources import ROOT

FOLDER = ROOT / "docs/learning/exercises"
CHAPTERS = ("10-context-management.md", "10-context-management.vi.md")


def printed(program: str) -> str:
    command = [sys.executable, str(FOLDER / program)]
    return subprocess.check_output(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, text=True, timeout=60)


def test_the_cut_exercise_moves_the_boundary_that_falls_into_a_batch():
    assert "naive boundary 17: refused" in printed("cut_inside_a_batch.py")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_cache_exercise_prints_what_the_chapter_shows(chapter):
    costs = re.findall(r"cost ([\d,]+) units", printed("behind_the_breakpoint.py"))
    text = (FOLDER.parent / chapter).read_text(encoding="utf-8")
    assert len(costs) == 4
    assert [cost for cost in costs if cost not in text and cost.replace(",", ".") not in text] == []
