"""Retention: what is too old goes, in an order that never leaves a reader with half of a session."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

# A fork or an import writes its files first and its rows last, within minutes. Nobody goes on with one a day later.
LEFTOVER_AGE = timedelta(days=1)


class SessionFolders(Protocol):
    """Where a file backend keeps the files of its sessions, whoever has them."""

    def folder_of(self, session_id: str) -> str: ...

    async def folders(self, age: timedelta) -> Sequence[str]:
        """Names of those that were made that long ago."""
        ...

    async def delete_session(self, session_id: str) -> None: ...

    async def remove_folder(self, name: str) -> None: ...


class PruneStore(Protocol):
    """Removes what is old in short transactions, beside servers at work; a dry run only counts.

    Ages are by the store's own clock. No row of a session's transcript goes before its session.
    """

    def events(self, age: timedelta, dry_run: bool) -> AsyncGenerator[int, None]:
        """One session's oldest events after the other; yields how many. All of runs that ended so long ago."""
        ...

    async def keys(self, dry_run: bool) -> int:
        """Idempotency keys that no longer stand for anything."""
        ...

    def sessions(self, age: timedelta, dry_run: bool) -> AsyncGenerator[str, None]:
        """Sessions without a live run that were not changed for that long; yields the id of each that is gone."""
        ...

    def ids(self) -> AsyncGenerator[Sequence[str], None]:
        """Of every session there is, subagents' too, in pages; one that was there before all pages is in one."""
        ...


@dataclass(frozen=True, slots=True)
class Policy:
    """What may go; None: nothing of it. Events of runs that ended that long ago, sessions not changed for that long.

    `lost_folders`: those that no session of the database has. Not without being asked: another one's sessions may.
    """

    events_after: timedelta | None
    sessions_after: timedelta | None
    lost_folders: bool
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Pruned:
    """Counts; `logs`: sessions whose oldest events went. `folders`: those that no session had."""

    sessions: int
    folders: int
    events: int
    logs: int
    keys: int


async def prune(store: PruneStore, folders: SessionFolders, policy: Policy) -> Pruned:
    """Whole sessions first: their events need not be counted twice."""
    sessions = 0
    if policy.sessions_after is not None:
        async with aclosing(store.sessions(policy.sessions_after, policy.dry_run)) as unused:
            async for session_id in unused:
                sessions += 1
                if not policy.dry_run:
                    await folders.delete_session(session_id)
    counts: list[int] = []
    if policy.events_after is not None:
        async with aclosing(store.events(policy.events_after, policy.dry_run)) as found:
            counts = [count async for count in found]
    keys = await store.keys(policy.dry_run)
    leftover = await _without_session(store, folders) if policy.lost_folders else ()
    for name in () if policy.dry_run else leftover:
        await folders.remove_folder(name)
    return Pruned(sessions, len(leftover), sum(counts), len(counts), keys)


async def _without_session(store: PruneStore, folders: SessionFolders) -> Sequence[str]:
    """What a server that died, or a stale owner, has left. Looked for before the sessions are: what is old and has none
    by then will never have one.

    None in a database without any session: it is rather the wrong one, or a new one beside a folder to be saved.
    """
    found = set(await folders.folders(LEFTOVER_AGE))
    sessions = 0
    async with aclosing(store.ids()) as pages:
        async for page in pages:
            sessions += len(page)
            found.difference_update(folders.folder_of(session_id) for session_id in page)
    return sorted(found) if sessions else ()
