"""What a client asks of its sessions, apart from their turns."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from app.apart import places
from app.context.apply import Source, apply, provenance
from app.context.budget import make_budget
from app.context.cache_points import message_points
from app.context.gauge import Gauge, gauge
from app.context.head import render_head
from app.context.limits import check_window
from app.context.measure import measure
from app.context.put_away import put_away
from app.context.repair import Repair
from app.context.shape import shape_rows
from app.conversation.clean import clean_json, clean_text
from app.conversation.messages import Content, Message, StoredMessage
from app.conversation.records import Ledger, Preamble, Record
from app.conversation.request import Breakpoint, ModelRequest, ToolDefinition
from app.conversation.session import Session
from app.ports import Estimator, FileBackend, FileInfo, IdSource, LedgerStore, Page, SessionStore, TranscriptStore
from app.reading import read_view
from app.sessions.opening import Offer, Opening, open_session
from app.sessions.profiles import Profiles, effective_profile

Audience = Literal["user", "agent", "all"]
MOST_VIEWS = 2  # of a tenant at once: each may be of hundreds of megabytes


@dataclass(frozen=True, slots=True)
class View:
    """`sources[i]`: where message i comes from."""

    messages: tuple[Message, ...]
    sources: Sequence[Source]
    breakpoints: Sequence[Breakpoint]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Every method raises NotFound for another tenant's session too.

    `base_system`: the system blocks of a session that has none of its own. `offer`: what every session has;
    `tools_of`: what the requests of one offer. `caches`: the provider has a prompt cache. `max_sessions`: of one
    tenant, None for no limit.
    """

    store: SessionStore
    transcript: TranscriptStore
    files: FileBackend
    ids: IdSource
    estimator: Estimator
    profiles: Profiles
    base_system: Content
    offer: Offer
    tools_of: Callable[[Session], Awaitable[tuple[ToolDefinition, ...]]]
    ledgers: LedgerStore
    caches: bool
    max_sessions: int | None = None
    _views: Mapping[str, asyncio.Semaphore] = field(default_factory=lambda: places(MOST_VIEWS))

    async def open(self, opening: Opening) -> tuple[Session, bool, list[Repair]]:
        return await open_session(self.store, self.ids, self.profiles, self.offer, opening, self.max_sessions)

    async def get(self, tenant: str, session_id: str) -> Session:
        return await self.store.get(tenant, session_id)

    async def list(self, tenant: str, after: str | None, limit: int) -> Page[Session]:
        return await self.store.list(tenant, after, limit)

    async def update(
        self, tenant: str, session_id: str, title: str | None, metadata: Mapping[str, Any] | None, model: str | None
    ) -> Session:
        """Changes what is not None. Raises InvalidPayload when the session cannot think on the new model."""
        if model is not None:
            session = await self.store.get(tenant, session_id)
            check_window(effective_profile(self.profiles, session, model), session.settings.thinking, "model")
        clean_title = None if title is None else clean_text(title)
        clean_metadata = None if metadata is None else clean_json(metadata)
        return await self.store.update(tenant, session_id, clean_title, clean_metadata, model)

    async def delete(self, tenant: str, session_id: str) -> None:
        """Rows first: while a run is live nothing is touched. Raises SessionBusy."""
        for gone in await self.store.delete(tenant, session_id):
            await self.files.delete_session(gone)

    async def messages(
        self, tenant: str, session_id: str, after: int, limit: int, visible_to: Audience
    ) -> Page[StoredMessage]:
        """Rows with seq > after; a page may hold fewer than `limit` though more follow. `next` is a seq."""
        await self.store.get(tenant, session_id)
        found = await self.transcript.stretch(session_id, after, limit)
        shown = [row for row in found.rows if _is_shown(row, visible_to)]
        return Page(shown, str(found.rows[-1].seq) if found.more else None)

    async def context(self, tenant: str, session_id: str) -> Gauge:
        """The gauge, with an estimate of the view as it stands."""
        session = await self.store.get(tenant, session_id)
        tools = await self.tools_of(session)  # which may wait for somebody else's server
        async with self._views[tenant]:
            ledger, rows = await self._ledger(session_id)
            profile = effective_profile(self.profiles, session)
            settings, memo = session.settings, ledger.memo
            budget = make_budget(profile, settings.max_tokens, settings.thinking, memo)
            # Thousands of rows take a tenth of a second: the streams of others do not wait for it.
            parts = await asyncio.to_thread(self._parts, session, ledger, rows, tools)
            added = await asyncio.to_thread(self._added, session, ledger, rows)
            estimated = sum(parts.values())
            whole = measure(memo, estimated, added, budget.window).tokens
            breakdown = {name: round(tokens * whole / max(1, estimated)) for name, tokens in parts.items()}
            last = session.last_input_tokens
            preset = profile.preset.name
            return gauge(profile.model, budget, last, whole, breakdown, session.compactions, memo.epochs, preset)

    def _parts(
        self, session: Session, ledger: Ledger, rows: Sequence[StoredMessage], tools: tuple[ToolDefinition, ...]
    ) -> dict[str, int]:
        """Estimates of what the next request consists of."""
        head = [message for message in (render_head(ledger, session.id),) if message]
        messages = apply(ledger, rows, session.id)[len(head) :]
        fresh = Preamble("", session.system or self.base_system, 0, tools)
        preamble = ledger.preamble or fresh
        return {
            "system": self._estimate(session, system=preamble.system),
            "tools": self._estimate(session, tools=preamble.tools),
            "summary": self._estimate(session, messages=tuple(head)),
            "messages": self._estimate(session, messages=messages),
        }

    def _added(self, session: Session, ledger: Ledger, rows: Sequence[StoredMessage]) -> int | None:
        """Estimate of the rows after the last request that was counted, None when there is no such request."""
        anchor = ledger.memo.anchor
        if anchor is None:
            return None
        newer = shape_rows([row for row in rows if row.seq > anchor.to_seq], ledger.shapings, session.id)
        return self._estimate(session, messages=tuple(Message(row.role, row.content) for row in newer))

    async def view(self, tenant: str, session_id: str) -> View:
        """What the model would be sent now, and which record shaped what."""
        async with self._views[tenant]:
            session = await self.store.get(tenant, session_id)
            ledger, rows = await self._ledger(session_id)
            messages = await asyncio.to_thread(apply, ledger, rows, session_id)
            sources = await asyncio.to_thread(provenance, ledger, rows, session_id)
            return View(messages, sources, self._breakpoints(session, ledger, messages))

    def _breakpoints(self, session: Session, ledger: Ledger, messages: tuple[Message, ...]) -> Sequence[Breakpoint]:
        if not (self.caches and effective_profile(self.profiles, session).prompt_caching):
            return ()
        system = session.system or self.base_system
        stable = ledger.preamble.stable if ledger.preamble else len(system)
        return (*((Breakpoint(None, stable - 1),) if stable else ()), *message_points(messages, ledger.cut is not None))

    async def listed_files(self, tenant: str, session_id: str) -> Sequence[tuple[FileInfo, Sequence[Record]]]:
        """Every file with the records that put its content away; sorted by path."""
        async with self._views[tenant]:
            await self.store.get(tenant, session_id)
            ledger, rows = await self._ledger(session_id)
            away = await asyncio.to_thread(put_away, ledger, rows, session_id)
            found = {info.path: info for info in await self.files.list(session_id, "/")}
            unlisted = {path: FileInfo(path, None, None) for path in away.keys() - found.keys()}
            return [(info, away.get(path, ())) for path, info in sorted({**unlisted, **found}.items())]

    async def records(self, tenant: str, session_id: str) -> Sequence[Record]:
        """The records in force, newest first."""
        async with self._views[tenant]:
            await self.store.get(tenant, session_id)
            ledger, _ = await self._ledger(session_id)
            cuts = dict.fromkeys(record for record in (ledger.summary, ledger.cut) if record)
            return [*reversed(list(cuts)), *reversed(ledger.folds), *reversed(ledger.shapings)]

    async def remains(self, session_id: str) -> tuple[str, Sequence[StoredMessage]]:
        """The newest summary, empty without one, and the rows that the view shows besides it."""
        ledger, rows = await self._ledger(session_id)
        return ledger.summary.summary if ledger.summary else "", rows

    async def _ledger(self, session_id: str) -> tuple[Ledger, Sequence[StoredMessage]]:
        ledger, rows, _ = await read_view(self.ledgers, self.transcript, session_id)
        return ledger, rows

    def _estimate(
        self,
        session: Session,
        system: Content = (),
        tools: tuple[ToolDefinition, ...] = (),
        messages: tuple[Message, ...] = (),
    ) -> int:
        return self.estimator.estimate_request(ModelRequest(session.model, 1, session.id, system, tools, messages))


def _is_shown(row: StoredMessage, visible_to: Audience) -> bool:
    return visible_to == "all" or (row.user_visible if visible_to == "user" else row.agent_visible)
