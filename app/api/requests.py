"""What every route reads from a request: tenant, services, cursors, the idempotency key."""

import hashlib
import json
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Path, Query, Request
from fastapi.security import HTTPBearer

from app.conversation.model_profile import ModelProfile
from app.conversation.session import Idempotency, Session
from app.errors import InvalidRequest
from app.ports import Database, EventLog, FileBackend, TranscriptStore
from app.sessions.service import Sessions
from app.turns.service import Turns

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Services:
    """What the wiring hands to the HTTP door."""

    sessions: Sessions
    turns: Turns
    transcript: TranscriptStore
    events: EventLog
    files: FileBackend
    database: Database
    profiles: dict[str, ModelProfile]
    default_model: str


def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def _tenant(request: Request) -> str:
    tenant: str = request.state.tenant
    return tenant


Context = Annotated[Services, Depends(_services)]
Tenant = Annotated[str, Depends(_tenant)]
Bearer = Depends(HTTPBearer(auto_error=False, description="A key of the server; not needed when it has none."))


async def _session(services: Context, tenant: Tenant, session_id: Annotated[str, Path(max_length=200)]) -> Session:
    return await services.sessions.get(tenant, session_id)


Opened = Annotated[Session, Depends(_session)]
Limit = Annotated[int, Query(ge=1, description="Larger values than 1000 are treated as 1000.")]
After = Annotated[str | None, Query(max_length=500, description="`next` of the page before.")]


def limit_of(limit: int) -> int:
    return min(limit, MAX_LIMIT)


def number(cursor: str | None) -> int:
    """A cursor that counts; 0 without one. Raises InvalidRequest."""
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 18:
        raise InvalidRequest("after: not a cursor of this list.")
    return int(cursor)


def _idempotency(
    request: Request,
    tenant: Tenant,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> Idempotency | None:
    if idempotency_key is None:
        return None
    body = json.dumps(getattr(request.state, "body", None), sort_keys=True, separators=(",", ":"))
    query = "&".join(sorted(str(request.url.query).split("&")))
    digest = hashlib.sha256(f"{query}\n{body}".encode()).hexdigest()
    return Idempotency(tenant, request.url.path, idempotency_key, digest)


Key = Annotated[Idempotency | None, Depends(_idempotency)]


def wants_stream(request: Request) -> bool:
    return "text/event-stream" in request.headers.get("accept", "")
