"""Known vulnerabilities of what requirements.lock pins, by pip-audit in an environment of its own below build/.

Status 1 when there is one. Without the tool, or without an answer of the vulnerability service, within a minute in all:
a notice that nothing was checked, and status 0, so that a machine without a network stays green.
"""

import json
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

TOOL = "pip-audit==2.10.1"
SECONDS = 60
ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "audit"
REPORT = PLACE / "report.json"


def main() -> int:
    deadline = time.monotonic() + SECONDS
    python = PLACE / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "--no-input", "--timeout", "10", "--retries", "1")
    look = (python, "-m", "pip_audit", "-r", "requirements.lock", "--no-deps", "--disable-pip", "--timeout", "10")
    venv.create(PLACE, clear=True, with_pip=True)
    if fault := failed((*pip, "-qq", "install", TOOL), deadline):
        return skipped(f"pip-audit could not be installed ({fault})")
    fault = failed((*look, "--progress-spinner", "off", "--format", "json", "--output", REPORT), deadline)
    if not REPORT.exists():
        return skipped(f"the vulnerability service did not answer ({fault})")
    return judged(json.loads(REPORT.read_text()))


def failed(command: tuple[Any, ...], deadline: float) -> str:
    """The last line of what went wrong; empty when nothing did."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=max(1, deadline - time.monotonic())
        )
    except subprocess.TimeoutExpired:
        return "no end in time"
    return (done.stderr.strip() or "no word").splitlines()[-1] if done.returncode else ""


def judged(report: dict[str, Any]) -> int:
    """The exit status that a report of pip-audit deserves, told on standard error."""
    listed = report["dependencies"]
    known = [package for package in listed if "skip_reason" not in package]
    if not known:
        return skipped("the vulnerability service knows none of these packages")
    found = [(package, fault) for package in known for fault in package["vulns"]]
    for package, fault in found:
        fixed = ", ".join(fault["fix_versions"]) or "none yet"
        told(f"{package['name']} {package['version']}: {fault['id']}, fixed in: {fixed}")
    unknown = f"; {len(listed) - len(known)} are unknown to the service" if len(known) < len(listed) else ""
    told(f"{len(known)} packages checked, {len(found)} vulnerabilities known{unknown}")
    return 1 if found else 0


def skipped(why: str) -> int:
    told(f"SKIPPED, nothing was checked: {why}")
    return 0


def told(line: str) -> None:
    sys.stderr.write(f"audit: {line}\n")


if __name__ == "__main__":
    raise SystemExit(main())
