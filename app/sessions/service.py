"""What a client asks of its sessions, apart from their turns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.context.gauge import Gauge, gauge
from app.context.repair import Repair
from app.context.view import render_view
from app.conversation.clean import clean_json, clean_text
from app.conversation.messages import Content, Message, StoredMessage
from app.conversation.request import ModelRequest, ToolDefinition
from app.conversation.session import Session
from app.ports import Estimator, FileBackend, IdSource, Page, SessionStore, TranscriptStore
from app.sessions.opening import Opening, open_session
from app.sessions.profiles import Profiles, effective_profile

Audience = Literal["user", "agent", "all"]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Every method raises NotFound for another tenant's session too.

    `base_system`: the system blocks of a session that has none of its own. `tools`: what every request offers.
    """

    store: SessionStore
    transcript: TranscriptStore
    files: FileBackend
    ids: IdSource
    estimator: Estimator
    profiles: Profiles
    base_system: Content
    tools: tuple[ToolDefinition, ...]

    async def open(self, opening: Opening) -> tuple[Session, bool, list[Repair]]:
        return await open_session(self.store, self.ids, self.profiles, opening)

    async def get(self, tenant: str, session_id: str) -> Session:
        return await self.store.get(tenant, session_id)

    async def list(self, tenant: str, after: str | None, limit: int) -> Page[Session]:
        return await self.store.list(tenant, after, limit)

    async def update(
        self, tenant: str, session_id: str, title: str | None, metadata: Mapping[str, Any] | None, model: str | None
    ) -> Session:
        """Changes what is not None."""
        clean_title = None if title is None else clean_text(title)
        clean_metadata = None if metadata is None else clean_json(metadata)
        return await self.store.update(tenant, session_id, clean_title, clean_metadata, model)

    async def delete(self, tenant: str, session_id: str) -> None:
        """Rows first: while a run is live nothing is touched. Raises SessionBusy."""
        await self.store.delete(tenant, session_id)
        await self.files.delete_session(session_id)

    async def messages(
        self, tenant: str, session_id: str, after: int, limit: int, visible_to: Audience
    ) -> Page[StoredMessage]:
        """Rows with seq > after; a page may hold fewer than `limit` though more follow. `next` is a seq."""
        await self.store.get(tenant, session_id)
        rows = await self.transcript.page(session_id, after, limit + 1)
        shown = [row for row in rows[:limit] if _is_shown(row, visible_to)]
        return Page(shown, str(rows[limit - 1].seq) if len(rows) > limit else None)

    async def context(self, tenant: str, session_id: str) -> Gauge:
        """The gauge, with an estimate of the view as it stands."""
        session = await self.store.get(tenant, session_id)
        view = render_view(await self.transcript.load(session_id))
        breakdown = {
            "system": self._estimate(session, system=session.system or self.base_system),
            "tools": self._estimate(session, tools=self.tools),
            "summary": 0,
            "messages": self._estimate(session, messages=view),
        }
        profile = effective_profile(self.profiles, session)
        return gauge(profile, session.last_input_tokens, sum(breakdown.values()), breakdown, session.compactions)

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
