"""The environment is read in one place, and no document tells of a setting that is gone."""

import re

from app.config import FOREIGN, PREFIX, Settings
from tests.walls.sources import APP, ROOT, python_files, shown

READER = APP / "config.py"
DOCUMENT = ROOT / "docs" / "configuration.md"
SETTINGS = sorted(FOREIGN.get(field, PREFIX + field.upper()) for field in Settings.model_fields)


def readings(path):
    text = path.read_text(encoding="utf-8")
    return [match.group() for match in re.finditer(r"\bos\.(environb?|getenvb?|putenv)\b|\bfrom os import .*env", text)]


def test_only_the_settings_read_the_environment():
    assert {shown(path): found for path in python_files(APP) if path != READER and (found := readings(path))} == {}


def test_the_document_names_no_setting_that_is_gone():
    whole = rf"\b{PREFIX}[A-Z0-9_]*[A-Z0-9](?![A-Z0-9_*])"
    named = set(re.findall(whole, DOCUMENT.read_text(encoding="utf-8")))
    assert named - set(SETTINGS) == set()
