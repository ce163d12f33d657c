"""The folder of skills: listed in order, its faults told once, and never a way out of it."""

import logging
import os
from pathlib import Path

import pytest

from app.errors import BodyTooLarge, FileMissing, HangoError, PathRefused
from app.filesystem.skills import MAX_FILE_BYTES, SkillFolder


def write(root: Path, name: str, text: str = "", description: str = "does it") -> Path:
    folder = root / name
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_text(text or f"---\nname: {name}\ndescription: {description}\n---\nDo {name}.\n")
    return folder


async def names(folder: SkillFolder) -> list[str]:
    return [skill.name for skill in await folder.list()]


async def test_skills_come_in_name_order_and_as_they_are_now(tmp_path: Path):
    folder = SkillFolder(tmp_path)
    assert await folder.list() == []
    for name in ("b", "a", "c"):
        write(tmp_path, name)
    assert await names(folder) == ["a", "b", "c"]
    write(tmp_path, "b", description="does another thing")
    (tmp_path / "a" / "SKILL.md").unlink()
    assert [(skill.name, skill.description) for skill in await folder.list()] == [
        ("b", "does another thing"), ("c", "does it"),
    ]  # fmt: skip


async def test_a_faulty_skill_is_told_once_by_file_and_rule_and_the_others_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = SkillFolder(tmp_path)
    write(tmp_path, "good")
    write(tmp_path, "bad", "---\nname: other\ndescription: x\n---\n")
    (write(tmp_path, "latin") / "SKILL.md").write_bytes(b"---\nname: latin\ndescription: \xff\n---\n")
    (write(tmp_path, "huge") / "SKILL.md").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    (tmp_path / "empty").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "README.md").write_text("no skill")
    (tmp_path / "linked").symlink_to(tmp_path / "good")
    with caplog.at_level(logging.ERROR):
        assert await names(folder) == ["good"]
        assert await names(folder) == ["good"]
    told = [record.getMessage() for record in caplog.records]
    assert [line.split(": ")[1] for line in told] == [
        f"{n}/SKILL.md" for n in ("bad", "empty", "huge", "latin", "linked")
    ]
    assert "name must be" in told[0]
    write(tmp_path, "bad")
    assert await names(folder) == ["bad", "good"]


async def test_a_folder_that_is_gone_has_no_skills(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.ERROR):
        assert await SkillFolder(tmp_path / "gone").list() == ()
    assert "cannot be read" in caplog.text


async def test_no_path_leads_out_of_a_skill(tmp_path: Path):
    (tmp_path / "secret").write_text("secret")
    root = tmp_path / "skills"
    root.mkdir()
    write(root, "other")
    folder = write(root, "a")
    (folder / "deep").mkdir()
    (folder / "deep" / "b.md").write_text("b")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    skills = SkillFolder(root)
    assert await skills.read("a", "deep/b.md") == b"b"
    assert list(await skills.files("a")) == ["SKILL.md", "deep/b.md"]
    for path in (
        "../other/SKILL.md", "deep/../../other/SKILL.md", "/etc/passwd", "..", "", ".", "deep", "link", "out/secret",
        "pipe", "no", "a\0b", "x" * 300, "d/" * 40 + "x",
    ):  # fmt: skip
        with pytest.raises((PathRefused, FileMissing)):
            await skills.read("a", path)
    for name in ("..", "../skills/a", "/", ".", "gone"):
        with pytest.raises(HangoError):
            await skills.read(name, "secret")
    (folder / "big").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    with pytest.raises(BodyTooLarge):
        await skills.read("a", "big")
