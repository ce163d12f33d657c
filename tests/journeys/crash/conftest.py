"""One machine per test, whose model answers as the scenario says."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.double.control import Double
from tests.journeys.crash.machine import Machine
from tests.journeys.crash.scenario import answer


@pytest.fixture
def machine(database_url: str, tmp_path: Path, double: Double) -> Machine:
    double.default = answer
    double.settings = replace(double.settings, delta_chars=2000)
    return Machine(database_url, tmp_path, double)
