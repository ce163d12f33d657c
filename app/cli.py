"""`hango serve | migrate | prune | doctor | key`."""

import argparse
import asyncio
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib.metadata import version
from typing import Any

from app import config
from app.config import Settings
from app.conversation.api_key import hashed_entry
from app.embedded_postgres.server import EmbeddedServer, first_start_fault, start_embedded
from app.errors import HangoError, StartupError
from app.logs import configure
from app.sessions.prune import Policy, Pruned
from app.sessions.prune import prune as run_prune
from app.storage.engine import Pool, is_ready, readable_address
from app.storage.prune import PostgresPrune
from app.system import spare_the_collector

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 2 when the settings or the database make the command impossible."""
    parser = argparse.ArgumentParser(prog="hango", description="An agent-run server.")
    parser.add_argument("--version", action="version", version=f"hango {version('hango')}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", help="migrate the database and serve (settings: HANGO_* variables)")
    commands.add_parser("migrate", help="bring the database's schema to this release")
    old = commands.add_parser("prune", help="remove what is old, beside a running server")
    old.add_argument("--events-older-than", metavar="AGE", type=age, help="events of runs that ended so long ago: 30d")
    old.add_argument("--sessions-unused-for", metavar="AGE", type=age, help="whole sessions, with their files: 26w")
    old.add_argument(
        "--lost-folders", action="store_true", help="files that no session of this database has; no other may use them"
    )
    old.add_argument("--dry-run", action="store_true", help="only count")
    commands.add_parser("doctor", help="say what is wrong with the settings, one line each")
    key = commands.add_parser("key", help="make an API key: prints it once, and its hashed entry for HANGO_API_KEYS")
    key.add_argument("tenant")
    parsed = parser.parse_args(arguments)
    if parsed.command == "key":
        return new_key(parsed.tenant)
    try:
        if parsed.command == "prune":
            ages = parsed.events_older_than, parsed.sessions_unused_for
            return prune(Policy(*ages, lost_folders=parsed.lost_folders, dry_run=parsed.dry_run))
        return {"serve": serve, "migrate": migrate, "doctor": doctor}[parsed.command]()
    except HangoError as error:
        problems: Any = error.extra.get("problems") or [error.detail]
        print(*(f"hango: {line}" for line in problems), sep="\n", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def serve() -> int:
    settings = config.load()
    configure(settings.log_level, settings.log_format)
    with _database(settings) as (url, embedded):
        if not asyncio.run(is_ready(url)):
            _migrate_apart(url)
        from app.main import create_app, start_instruments
        from app.main import serve as serve_app

        keep = embedded.revive if embedded else None
        instruments = start_instruments(settings)
        app = create_app(settings, url, keep_database=keep, instruments=instruments, when_warm=spare_the_collector)
        serve_app(app, settings)
    return 0


def migrate() -> int:
    settings = config.load()
    with _database(settings) as (url, _):
        if not asyncio.run(is_ready(url)):
            from app.storage.migrate import upgrade

            upgrade(url)
    print("hango: the schema is at this release's head")
    return 0


def _migrate_apart(url: str) -> None:
    """In a process of its own: a server would hold the migration libraries (30 MB) for as long as it lives."""
    command = [sys.executable, "-m", "app.cli", "migrate"]
    done = subprocess.run(
        command,
        check=False,
        env=config.environment_with(url),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise StartupError("The database could not be migrated.", problems=done.stderr.strip().splitlines())


def age(text: str) -> timedelta:
    """A number with its unit: s, m, h, d or w. Raises ArgumentTypeError."""
    found = re.fullmatch(r"(\d{1,5})([smhdw])", text, re.ASCII)
    if found is None:
        raise argparse.ArgumentTypeError("write a number of up to 5 digits with its unit: 36h, 30d, 26w")
    return timedelta(seconds=int(found[1]) * SECONDS[found[2]])


def prune(policy: Policy) -> int:
    settings = config.load()
    if _is_unmade(settings):
        raise StartupError(f"There is no database yet in {settings.data_dir}: nothing to remove.")
    configure(settings.log_level, settings.log_format)
    with _database(settings) as (url, _):
        done = asyncio.run(_prune(settings, url, policy))
    verb = "would be removed" if policy.dry_run else "removed"
    print(f"hango: {done.sessions} unused sessions with their files {verb}")
    if policy.lost_folders:
        print(f"hango: {done.folders} folders without a session {verb}")
    print(f"hango: {done.events} events of {done.logs} other sessions {verb}")
    print(f"hango: {done.keys} expired idempotency keys {verb}")
    return 0


async def _prune(settings: Settings, url: str, policy: Policy) -> Pruned:
    from app.wiring import make_stored_files

    pool = Pool(url, 1)
    try:
        with readable_address():
            await pool.check()
        return await run_prune(PostgresPrune(pool), make_stored_files(settings), policy)
    finally:
        await pool.close()


def doctor() -> int:
    """Changes nothing in the database, and makes none; starts an embedded one that is there for a moment."""
    settings = config.load()
    if unmade := _is_unmade(settings):
        fault = first_start_fault(settings.data_dir)
        problems = [fault] if fault else []
    else:
        from app.wiring import faults

        with _database(settings) as (url, _):
            problems = asyncio.run(faults(settings, url))
    if problems:
        raise StartupError("The server cannot start.", problems=problems)
    print(f"hango: settings are fine; provider {settings.provider_name}, model {settings.model_name}")
    if unmade:
        print(f"hango: there is no database yet: the first `hango serve` makes one in {settings.data_dir}")
    return 0


def new_key(tenant: str) -> int:
    """Nothing is stored: the key is on the screen alone."""
    key = f"hango_{secrets.token_urlsafe(32)}"
    try:
        entry = hashed_entry(tenant, key)
    except ValueError as error:
        print(f"hango: {error}", file=sys.stderr)
        return 2
    print(f"key (for the client, shown once): {key}\nentry (for HANGO_API_KEYS):        {entry}")
    return 0


def _is_unmade(settings: Settings) -> bool:
    """Whether the embedded database would have to be made first."""
    return not settings.database_url and not (settings.data_dir / "postgres").exists()


@contextmanager
def _database(settings: Settings) -> Iterator[tuple[str, EmbeddedServer | None]]:
    """The configured database, or the embedded one for as long as it is needed. From the main thread only."""
    if settings.database_url:
        yield settings.database_url, None
        return
    server = start_embedded(settings.data_dir)
    try:
        yield server.database_url, server
    finally:
        server.stop()


if __name__ == "__main__":
    raise SystemExit(main())
