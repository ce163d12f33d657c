"""The documents hold together: links lead somewhere, and the index knows every decision."""

import re

from tests.walls.sources import ROOT, repository_files, shown

LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
DECISIONS = ROOT / "docs" / "decisions"


def test_every_relative_link_leads_to_a_file():
    pages = [path for path in repository_files() if path.suffix == ".md"]
    broken = [
        (shown(page), link)
        for page in pages
        for link in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert broken == []


def test_the_index_knows_every_decision_once_and_in_order():
    index = re.findall(r"\]\((\d{4}-[^)]+\.md)\)", (DECISIONS / "README.md").read_text(encoding="utf-8"))
    assert index == sorted(path.name for path in DECISIONS.glob("[0-9]*.md"))


def test_a_decision_fits_on_one_screen():
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in DECISIONS.glob("[0-9]*.md")}
    assert {name: lines for name, lines in lengths.items() if lines > 70} == {}
