"""What every route reads from a request: tenant, services, cursors, the idempotency key."""

import hashlib
import json
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.responses import Response

from app.apart import apart
from app.api.readiness import Readiness
from app.conversation.model_profile import ModelProfile
from app.conversation.session import Idempotency, Session
from app.errors import NotFound, SubagentSession
from app.ports import Database, EventLog, FileBackend, MetricsPage, TranscriptStore
from app.sessions.closing import Closer
from app.sessions.service import Sessions
from app.sessions.transfers import Transfers
from app.turns.service import Turns

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000

_WEIGHT = re.compile(r"q\s*=\s*(\d(?:\.\d{0,3})?)")
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Services:
    """What the wiring hands to the HTTP door. `metrics` None: nobody may ask for them."""

    sessions: Sessions
    turns: Turns
    transcript: TranscriptStore
    events: EventLog
    files: FileBackend
    database: Database
    profiles: dict[str, ModelProfile]
    default_model: str
    ping_s: float
    readiness: Readiness
    metrics: MetricsPage | None
    closer: Closer
    transfers: Transfers


class DoorRequest(Request):
    """Its body is what the door parsed and cleaned, so that it is parsed once, or what was made of it off the loop."""

    async def body(self) -> bytes:
        """As it came, once: the base class would copy it, and keep it for as long as the answer takes."""
        body: bytes = (await self.receive()).get("body", b"")
        return body

    async def json(self) -> Any:
        return getattr(self.state, "checked", self.state.body)


class DoorRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle, field = super().get_route_handler(), self.body_field

        async def handle_parsed(request: Request) -> Response:
            if request.state.large and field is not None:
                request.state.checked = await apart(True, lambda: _checked(field.validate, request.state.body))
            return await handle(DoorRequest(request.scope, request.receive))

        return handle_parsed


def _checked(check: Callable[..., tuple[Any, Sequence[Any]]], body: Any) -> Any:
    """The payload, which the framework lets pass where it checks again. Raises RequestValidationError."""
    payload, errors = check(body, loc=("body",))
    if errors:
        raise RequestValidationError(errors)
    return payload


def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def _tenant(request: Request) -> str:
    tenant: str = request.state.tenant
    return tenant


Context = Annotated[Services, Depends(_services)]
Tenant = Annotated[str, Depends(_tenant)]
Bearer = Depends(HTTPBearer(auto_error=False, description="A key of the server; not needed when it has none."))


def known_id(value: str) -> str:
    """Raises NotFound for what no id of this server looks like."""
    if not _ID.fullmatch(value):
        raise NotFound("There is nothing with this id.")
    return value


# Opaque to clients, so no pattern: whoever makes requests from the document needs ids that the server gave.
SessionId = Annotated[str, Path(json_schema_extra={"format": "session-id"})]


async def _session(request: Request, services: Context, tenant: Tenant, session_id: SessionId) -> Session:
    """A subagent's session is read-only from outside."""
    session = await services.sessions.get(tenant, known_id(session_id))
    if session.parent_session_id is not None and request.method != "GET":
        raise SubagentSession
    return session


def _run_id(run_id: str) -> str:
    return known_id(run_id)


Opened = Annotated[Session, Depends(_session)]
RunId = Annotated[str, Depends(_run_id)]
_LIMIT = "Larger values than 1000 are treated as 1000. Fewer come where they hold more than 8 MiB."
Limit = Annotated[int, Query(ge=1, description=_LIMIT)]
After = Annotated[
    str | None, Query(max_length=500, description="`next` of the page before.", json_schema_extra={"format": "cursor"})
]
# Sequence numbers are 32-bit integers.
NUMBER = r"^[0-9]{0,9}$"
AfterNumber = Annotated[str | None, Query(pattern=NUMBER, description="`next` of the page before: a number.")]


def limit_of(limit: int) -> int:
    return min(limit, MAX_LIMIT)


def number(cursor: str | None) -> int:
    """A cursor that counts; 0 without one."""
    return int(cursor or 0)


async def _idempotency(
    request: Request,
    tenant: Tenant,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> Idempotency | None:
    if idempotency_key is None:
        return None
    digest = await apart(request.state.large, lambda: _digest(request))
    return Idempotency(tenant, request.url.path, idempotency_key, digest)


def _digest(request: Request) -> str:
    # In pieces: written in one call, very many values would hold the interpreter for as long as it takes.
    body = "".join(_canonical.iterencode(getattr(request.state, "body", None)))
    query = "&".join(sorted(str(request.url.query).split("&")))
    return hashlib.sha256(f"{query}\n{body}".encode()).hexdigest()


Key = Annotated[Idempotency | None, Depends(_idempotency)]


def wants_stream(request: Request) -> bool:
    """Whether the client names the event stream, and likes it no less than JSON."""
    weights = dict(_weighed(part) for part in ",".join(request.headers.getlist("accept")).split(","))
    stream = weights.get("text/event-stream", 0)
    return stream > 0 and stream >= weights.get("application/json", 0)


def _weighed(part: str) -> tuple[str, float]:
    kind, *parameters = [item.strip().lower() for item in part.split(";")]
    found = (_WEIGHT.fullmatch(parameter) for parameter in parameters)
    return kind, next((float(match[1]) for match in found if match), 1.0)
