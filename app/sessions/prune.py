"""Retention: what is too old goes, in an order that never leaves a reader with half of a session."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from app.ports import FileBackend


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


@dataclass(frozen=True, slots=True)
class Policy:
    """What may go; None: nothing of it. Events of runs that ended that long ago, sessions not changed for that long."""

    events_after: timedelta | None
    sessions_after: timedelta | None
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Pruned:
    """Counts; `logs`: sessions whose oldest events went."""

    sessions: int
    events: int
    logs: int
    keys: int


async def prune(store: PruneStore, files: FileBackend, policy: Policy) -> Pruned:
    """Whole sessions first: their events need not be counted twice."""
    sessions = 0
    if policy.sessions_after is not None:
        async with aclosing(store.sessions(policy.sessions_after, policy.dry_run)) as unused:
            async for session_id in unused:
                sessions += 1
                if not policy.dry_run:
                    await files.delete_session(session_id)
    counts: list[int] = []
    if policy.events_after is not None:
        async with aclosing(store.events(policy.events_after, policy.dry_run)) as found:
            counts = [count async for count in found]
    return Pruned(sessions, sum(counts), len(counts), await store.keys(policy.dry_run))
