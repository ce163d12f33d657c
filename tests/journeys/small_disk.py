"""Disks that are soon full."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Skips the test where none can be mounted."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or not shutil.which("mount") or subprocess.run(mount, check=False).returncode != 0:
        pytest.skip("only root may mount a small disk, and not in every container")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """The file that takes all the room."""
    filler = disk / ".filler"
    with filler.open("wb", buffering=0) as file:
        for size in (2**16, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return filler
