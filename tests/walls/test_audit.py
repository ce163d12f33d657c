"""The audit of dependencies fails for a known vulnerability, and says so when it could not look."""

import importlib.util
import sys

import pytest

from tests.walls.sources import ROOT


@pytest.fixture(scope="module")
def audit():
    spec = importlib.util.spec_from_file_location("ci_audit", ROOT / ".ci" / "audit.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(name, *faults, **rest):
    return {"name": name, "version": "1.0", "vulns": list(faults), **rest}


FAULT = {"id": "CVE-2026-1", "fix_versions": ["1.1"], "aliases": [], "description": "bad"}
UNKNOWN = {"name": "ours", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("listed", "status", "says"),
    [([package("a"), package("b", FAULT)], 1, ["b 1.0: CVE-2026-1, fixed in: 1.1", "2 packages checked, 1 vuln"]),
     ([package("a", {**FAULT, "fix_versions": []}), UNKNOWN], 1, ["fixed in: none yet", "1 are unknown"]),
     ([package("a"), UNKNOWN], 0, ["1 packages checked, 0 vulnerabilities known; 1 are unknown"]),
     ([UNKNOWN], 0, ["SKIPPED, nothing was checked"]), ([], 0, ["SKIPPED, nothing was checked"])],
)  # fmt: skip
def test_a_report_is_judged(audit, capsys, listed, status, says):
    assert audit.judged({"dependencies": listed, "fixes": []}) == status
    told = capsys.readouterr().err
    assert all(part in told for part in says)


def test_a_program_that_fails_hangs_or_works_is_told_apart(audit):
    def run(code, seconds=30):
        return audit.failed((sys.executable, "-c", code), audit.time.monotonic() + seconds)

    assert run("pass") == ""
    assert run("raise SystemExit('no network')") == "no network"
    assert run("import time; time.sleep(60)", seconds=0) == "no end in time"


def test_the_audit_is_part_of_what_a_change_must_pass_and_not_of_the_tests():
    makefile = (ROOT / "Makefile").read_text()
    assert "make audit" in (ROOT / ".ci" / "run").read_text()
    assert "audit" not in makefile.split("\ntest:")[1].split("\n\n")[0]
