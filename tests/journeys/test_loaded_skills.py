"""Skills over HTTP: listed before the breakpoint, loaded on demand, and a changed folder moves no sent prefix."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.house import Build
from tests.rooms.filesystem.test_skill_folder import write
from tests.walls.sources import ROOT


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """The example of the page, as a folder."""
    page = (ROOT / "docs/skills.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```markdown\n(.*?)```", page, flags=re.DOTALL)
    root = tmp_path / "skills"
    root.mkdir()
    write(root, "release-notes", example)
    (root / "release-notes" / "examples").mkdir()
    (root / "release-notes" / "examples" / "good.md").write_text("- It starts faster.")
    return root


def system(double: Double) -> list[dict[str, Any]]:
    return list(double.requests[-1].body["system"])


def result(double: Double) -> dict[str, Any]:
    return dict(double.requests[-1].body["messages"][-1]["content"][0])


async def test_the_example_is_listed_and_loaded(build: Build, double: Double, skills: Path):
    house = await build(double=double, skills_dir=skills)
    session = await house.open(system="Be exact.")
    double.script(
        Reply([call("t1", "load_skill", {"skill": "release-notes"})]),
        Reply([call("t2", "load_skill", {"skill": "release-notes", "path": "examples/good.md"})]),
        Reply([call("t3", "load_skill", {"skill": "release-notes", "path": "../../x"})]),
        Reply([call("t4", "load_skill", {"skill": "nothing"})]),
        say("done"),
    )
    await house.turn(session)
    own, listed = system(double)
    assert own["text"] == "Be exact."
    assert "- release-notes: How release notes are written here." in listed["text"]
    assert "cache_control" in listed
    results = [row["content"][0] for row in await house.messages(session) if row["content"][0]["type"] == "tool_result"]
    assert results[0]["content"].startswith("1. Read CHANGELOG.md first.")
    assert results[0]["content"].endswith("\nexamples/good.md")
    assert results[1]["content"] == "- It starts faster."
    assert [bool(found.get("is_error")) for found in results] == [False, False, True, True]
    assert "release-notes" in results[3]["content"]
    assert not double.refused


async def test_a_changed_folder_is_told_in_a_note_and_moves_no_prefix(build: Build, double: Double, skills: Path):
    house = await build(double=double, skills_dir=skills)
    session = await house.open()
    double.script(*[say(f"{number}") for number in range(4)])
    await house.turn(session, "one")
    before = double.requests[-1].body
    write(skills, "a-new-one", description="for what is new")
    write(skills, "broken", "no front matter")
    await house.turn(session, "two")
    after = double.requests[-1].body
    assert (after["system"], after["tools"]) == (before["system"], before["tools"])
    told = after["messages"][-1]["content"][-1]["text"]
    assert told.startswith("<context_note>")
    assert "- a-new-one: for what is new" in told
    assert "release-notes" not in told
    await house.turn(session, "three")
    assert "context_note" not in str(double.requests[-1].body["messages"][-1])
    assert (await house.get(f"{session}/context"))["epochs"] == 0
    fresh = await house.open()
    await house.turn(fresh, "one")
    assert "a-new-one" in system(double)[-1]["text"]
    assert not double.refused


async def test_without_the_setting_there_is_neither_list_nor_tool(build: Build, double: Double):
    house = await build(double=double)
    session = await house.open(system="Be exact.")
    double.script(say("ok"))
    await house.turn(session)
    assert [block["text"] for block in system(double)] == ["Be exact."]
    assert "load_skill" not in [tool["name"] for tool in double.requests[-1].body["tools"]]
