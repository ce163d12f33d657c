"""Opening a session: a fresh one, or one that begins with an imported transcript."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.apart import apart, is_large
from app.context.limits import check_max_tokens, check_window
from app.context.repair import Repair
from app.conversation.clean import clean_json
from app.conversation.messages import Block, Content
from app.conversation.run import NewMessage
from app.conversation.session import Idempotency, NewSession, Session, SessionSettings
from app.conversation.tool_allow import Allowed
from app.errors import TooManySessions
from app.ports import Admit, IdSource, SessionStore
from app.sessions.client_tools import read_approvals, read_tools
from app.sessions.payload import check_thinking, read_system
from app.sessions.profiles import Profiles, overridden, read_context
from app.sessions.tool_servers import read_servers
from app.sessions.transcript_import import import_rows

RETRY_S = 60  # sessions go when somebody deletes them


@dataclass(frozen=True, slots=True)
class Opening:
    """What the client posted. `messages`: a transcript in Anthropic form; `repair` allows the smallest change to it."""

    tenant: str
    model: str
    system: str | Sequence[Block] | None = None
    max_tokens: int | None = None
    thinking: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[Mapping[str, Any]] = ()
    approvals: Mapping[str, Any] = field(default_factory=dict)
    mcp_servers: Sequence[Mapping[str, Any]] = ()
    messages: Sequence[Mapping[str, Any]] = ()
    repair: bool = False
    key: Idempotency | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """What this server has, by name: `tools` of its own, `servers` of the operator. `allowed`: where others may be."""

    tools: frozenset[str]
    servers: frozenset[str] = frozenset()
    allowed: Allowed = Allowed()  # noqa: RUF009 (frozen)


async def open_session(
    store: SessionStore,
    ids: IdSource,
    profiles: Profiles,
    offer: Offer,
    opening: Opening,
    max_sessions: int | None,
) -> tuple[Session, bool, list[Repair]]:
    """The session, whether it is new (False: the key had made it already), and what was repaired of its transcript.

    An unknown model is allowed. Raises InvalidPayload, TranscriptInvalid, IdempotencyMismatch, TooManySessions.
    """
    if made := await store.made_by(opening.key):
        return made, False, (await _rows(opening, ids))[1] if opening.repair else []
    settings, system = await read_choices(profiles, offer, opening)
    await check_room(store, opening.tenant, max_sessions, opening.key)
    rows, repairs = await _rows(opening, ids)
    new = NewSession(ids.new("ses"), opening.tenant, system, opening.model, settings)
    session, created = await store.create(new, rows, opening.key, at_most(max_sessions))
    return session, created, repairs


async def read_choices(profiles: Profiles, offer: Offer, opening: Opening) -> tuple[SessionSettings, Content]:
    """Settings and system. Raises InvalidPayload."""
    large = is_large([opening.system, opening.tools])
    return await apart(large, lambda: (read_settings(profiles, offer, opening), read_system(opening.system)))


async def _rows(opening: Opening, ids: IdSource) -> tuple[list[NewMessage], list[Repair]]:
    """A transcript is read off the event loop: a long one takes a second."""
    if not opening.messages:
        return [], []
    return await asyncio.to_thread(import_rows, opening.messages, opening.repair, ids)


async def check_room(store: SessionStore, tenant: str, sessions: int | None, key: Idempotency | None) -> None:
    """Before costly work; `SessionStore.create` asks again, under its lock. Raises TooManySessions.

    Not where the key has made one by now: it is that one which counts, and which `create` will give.
    """
    if admit := at_most(sessions):
        present = await store.count(tenant)
        if await store.made_by(key) is None:
            admit(present)


def at_most(sessions: int | None) -> Admit | None:
    """For `SessionStore.create`; None: no limit."""
    if sessions is None:
        return None

    def admit(present: int) -> None:
        if present >= sessions:
            detail = f"A tenant may have {sessions} sessions; delete some."
            raise TooManySessions(detail, sessions, RETRY_S)

    return admit


def read_settings(profiles: Profiles, offer: Offer, opening: Opening) -> SessionSettings:
    """Raises InvalidPayload."""
    profile = profiles(opening.model)
    check_max_tokens(profile, opening.max_tokens, None)
    check_thinking(opening.thinking, opening.max_tokens or profile.default_max_tokens)
    context = read_context(profile, opening.context)
    tools = read_tools(opening.tools, offer.tools)
    settings = SessionSettings(
        max_tokens=opening.max_tokens,
        thinking=opening.thinking,
        metadata=clean_json(opening.metadata),
        context=context,
        tools=tools,
        approvals=read_approvals(opening.approvals, offer.tools | {tool["name"] for tool in tools}),
        mcp_servers=read_servers(opening.mcp_servers, offer.allowed, offer.servers),
    )
    check_window(overridden(profile, context), settings.thinking, "thinking.budget_tokens")
    return settings
