"""The data directory: made whole or not at all."""

import os
import shutil
from pathlib import Path

from app.embedded_postgres.account import Account
from app.embedded_postgres.binaries import Binaries
from app.embedded_postgres.layout import Layout
from app.embedded_postgres.process import end_leftovers, inside, run
from app.errors import StartupError

DATABASE = "hango"


def major_version(cluster: Path) -> int | None:
    """Of the programs that made it; None when there is no cluster yet."""
    try:
        return int((cluster / "PG_VERSION").read_text())
    except FileNotFoundError:
        return None


def make_cluster(layout: Layout, binaries: Binaries, account: Account, durable: bool) -> None:
    """initdb and the database `hango` in a sibling folder that then takes the name: a killed one is begun anew."""
    if layout.cluster.exists() and any(layout.cluster.iterdir()):
        raise StartupError(f"{layout.cluster} is not empty and not a data directory of PostgreSQL; move it away.")
    draft = layout.draft
    end_leftovers(draft)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    account.own(draft)
    run(account, draft, [binaries.program("initdb"), *_initdb_options(draft, binaries.major, durable)], layout.log)
    data = inside(draft)
    single = ["--single", "-D", data, "-c", "exit_on_error=on", "-c", "log_checkpoints=off", "postgres"]
    run(account, draft, [binaries.program("postgres"), *single], layout.log, f"CREATE DATABASE {DATABASE}\n")
    draft.rename(layout.cluster)
    _sync_folder(layout.data_dir)


def _sync_folder(folder: Path) -> None:
    """Were the new name lost in a power cut, the next start would take the rows for a draft and remove them."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _initdb_options(draft: Path, major: int, durable: bool) -> list[str]:
    options = ["-D", inside(draft), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]
    options.append("--no-instructions")
    if major >= 17:
        # Case rules of Unicode that depend neither on the machine's locales nor on their updates.
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return options if durable else [*options, "--no-sync"]
