"""The processes under measurement, started like a user would start them."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """`started_s`: seconds from exec to the first answer."""

    pid: int
    url: str
    started_s: float

    def cpu_s(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def rss_mb(self) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))


@contextmanager
def running(
    module: list[str], port: int, path: str, env: Mapping[str, str], log: IO[bytes] | int = subprocess.DEVNULL
) -> Iterator[Process]:
    """`python -m <module>` until the block ends; ready when `path` gives any HTTP answer. `log` gets its errors."""
    url, begin = f"http://127.0.0.1:{port}", time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", *module], env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=log
    ) as child:
        try:
            _wait(f"{url}{path}", child)
            yield Process(child.pid, url, time.perf_counter() - begin)
        finally:
            child.terminate()


def _wait(url: str, child: subprocess.Popen[bytes]) -> None:
    deadline = time.perf_counter() + 30
    while time.perf_counter() < deadline and child.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except OSError as error:
            if hasattr(error, "code"):
                return
            time.sleep(0.005)
        else:
            return
    raise RuntimeError(f"{child.args} did not answer at {url}")
