"""Recordings played through the whole server at windows they do not fit: nothing is refused, lost or changed."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.conversation.presets import HANGO, PRESETS
from bench.replay.checks import faults
from bench.replay.play import play
from bench.replay.recordings import load, recordings
from bench.replay.settings import ADAPTIVE, SETTINGS, Setting
from tests.journeys.made_up import made_up

WINDOW = 10_000
SMALL = (
    Setting("plain", WINDOW),
    Setting("dense", WINDOW * 2, bytes_per_token=2),
    Setting("thinking", WINDOW, thinking=ADAPTIVE),
    Setting("failing", WINDOW, failing=True),
    Setting("mcp", WINDOW, served=True),
)
UNDER_PRESETS = [
    Setting(f"{preset}{'-thinking' if thinking else ''}", WINDOW, thinking=thinking, preset=preset)
    for preset in PRESETS
    for thinking in (None, ADAPTIVE)
    if preset != HANGO.name
]
SHARED = [
    pytest.param(setting, path, marks=[pytest.mark.slow if setting.name == "32k" else pytest.mark.soak])
    for setting in SETTINGS
    for path in recordings()
    if not (setting.skip and path.name.startswith(setting.skip))
]


@pytest.mark.parametrize("setting", SMALL, ids=lambda setting: setting.name)
async def test_a_recording_larger_than_the_window_is_played_to_its_end(
    setting: Setting, database_url: str, tmp_path: Path
):
    played = await play(made_up(), setting, database_url, tmp_path)
    assert faults(played) == []
    assert played.context["compactions"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("setting", UNDER_PRESETS, ids=lambda setting: setting.name)
async def test_it_is_played_to_its_end_under_every_preset(setting: Setting, database_url: str, tmp_path: Path):
    played = await play(made_up(), setting, database_url, tmp_path)
    assert faults(played) == []
    assert played.context["epochs"] > 0


async def test_the_checks_see_what_they_look_for(database_url: str, tmp_path: Path):
    played = await play(made_up(), SMALL[0], database_url, tmp_path)
    first, *others = played.messages
    changed = {**first, "content": [{"type": "text", "text": "something else"}]}
    broken = {
        "over": replace(played, setting=replace(played.setting, window=1000)),
        "changed": replace(played, messages=[changed, *others]),
        "missing": replace(played, messages=others),
        "lost": replace(played, archive=""),
        "failed": replace(played, turns=[{"status": "failed", "error": {"code": "internal"}}]),
        "repeated": replace(played, events=[event for event in played.events if event["type"] != "message.assistant"]),
    }
    assert [name for name, one in broken.items() if not faults(one)] == []


@pytest.mark.parametrize(("setting", "path"), SHARED, ids=lambda value: getattr(value, "stem", None) or value.name)
async def test_a_real_recording_is_played_to_its_end(setting: Setting, path: Path, database_url: str, tmp_path: Path):
    assert faults(await play(load(path), setting, database_url, tmp_path)) == []
