"""Sessions in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from app.conversation.run import NewMessage, Run, RunInput, RunStatus
from app.conversation.session import Idempotency, NewSession, Session
from app.conversation.usage import Purpose, Usage, add_usage
from app.errors import NotFound, SessionBusy
from app.ports import Admit, Page
from app.storage import cursor
from app.storage.imported import imported_calls
from app.storage.json_text import dumps
from app.storage.memory.state import MemoryState, Room
from app.storage.memory.steps import kept
from app.storage.rendering import as_stored
from app.storage.stretch import bounded


class MemorySessions:
    """Implements `ports.SessionStore`."""

    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def create(
        self,
        session: NewSession,
        messages: Sequence[NewMessage],
        key: Idempotency | None,
        admit: Admit | None = None,
    ) -> tuple[Session, bool]:
        if (made := self._state.known(key)) is not None:
            return await self.get(session.tenant, made), False
        if admit is not None:
            admit(await self.count(session.tenant))
        messages = [replace(message, content=tuple(kept(message.content))) for message in messages]
        calls = [call for seq in range(1, len(messages) + 1) for call in imported_calls(messages, seq)]
        self._state.claim_ids(None, messages, calls)
        self._state.keep(key, session.id)
        at = self._state.clock.now()
        self._state.rooms[session.id] = room = Room(
            Session(
                id=session.id,
                tenant=session.tenant,
                title=session.title,
                system=tuple(kept(session.system)),
                model=session.model,
                settings=session.settings,
                status="idle",
                usage={},
                last_input_tokens=0,
                compactions=0,
                created_at=at,
                updated_at=at,
                parent_session_id=session.parent_session_id,
            ),
            messages=[as_stored(message, seq, None, at) for seq, message in enumerate(messages, 1)],
            calls={(call.message_seq, call.index): call for call in calls},
        )
        if session.base is not None:
            room.runs[session.base[0]] = _base(session, *session.base, at)
        return room.shown(), True

    async def made_by(self, key: Idempotency | None) -> Session | None:
        made = self._state.known(key)
        return None if key is None or made is None else await self.get(key.tenant, made)

    async def count(self, tenant: str) -> int:
        return len(self._state.rooms_of(tenant))

    async def get(self, tenant: str, session_id: str) -> Session:
        return self._room(tenant, session_id).shown()

    def _room(self, tenant: str, session_id: str) -> Room:
        room = self._state.room(session_id)
        if room.session.tenant != tenant:
            raise NotFound
        return room

    async def list(self, tenant: str, after: str | None, limit: int) -> Page[Session]:
        start = cursor.decode(after)
        shown = [room.shown() for room in self._state.rooms_of(tenant)]
        found = sorted((s for s in shown if cursor.place_of(s) > start), key=cursor.place_of)
        return cursor.page(
            bounded(found, limit, lambda session: len(dumps([session.system, session.settings.to_json()])))
        )

    async def update(
        self, tenant: str, session_id: str, title: str | None, metadata: Mapping[str, object] | None, model: str | None
    ) -> Session:
        room = self._room(tenant, session_id)
        settings = room.session.settings
        room.session = replace(
            room.session,
            title=room.session.title if title is None else title,
            settings=settings if metadata is None else replace(settings, metadata=kept(metadata)),
            model=room.session.model if model is None else model,
            updated_at=self._state.clock.now(),
        )
        return room.shown()

    async def find(self, session_id: str) -> Session:
        return self._state.room(session_id).shown()

    async def begin_close(self, tenant: str, session_id: str) -> Session:
        room = self._idle(tenant, session_id)
        if room.session.status == "idle":
            room.session = replace(room.session, status="closing", updated_at=self._state.clock.now())
        return room.session

    async def end_close(self, tenant: str, session_id: str, spent: Usage) -> Session:
        room = self._idle(tenant, session_id)
        if room.session.status != "closed":
            usage = room.session.usage
            usage = add_usage(usage, Purpose.MEMORY, spent) if spent.calls else usage
            room.session = replace(room.session, status="closed", usage=usage, updated_at=self._state.clock.now())
        return room.session

    async def delete(self, tenant: str, session_id: str) -> Sequence[str]:
        self._idle(tenant, session_id)
        return self._state.remove(session_id)

    def _idle(self, tenant: str, session_id: str) -> Room:
        room = self._room(tenant, session_id)
        if room.live():
            raise SessionBusy(room.live()[0].id)
        return room


def _base(session: NewSession, run_id: str, state: Mapping[str, Any], at: datetime) -> Run:
    return Run(
        id=run_id,
        session_id=session.id,
        turn=0,
        kind="base",
        status=RunStatus.COMPLETED,
        input=RunInput(()),
        model=session.model,
        state=kept(state),
        usage={},
        stop_reason=None,
        error=None,
        cancel_requested=False,
        created_at=at,
        ended_at=at,
    )
