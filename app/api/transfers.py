"""Sessions that go on elsewhere: fork, export, and the export that comes back."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from app.apart import apart
from app.api.answers import PROBLEMS, SessionAnswer
from app.api.export_lines import line_of, read_lines
from app.api.json_body import LINES, media_type
from app.api.json_text import DATA_HEADERS, JsonResponse, encode
from app.api.presence import while_there
from app.api.render import session_json
from app.api.requests import Bearer, Context, DoorRoute, Key, Opened, Tenant
from app.api.schemas import ForkRequest
from app.conversation.session import Session
from app.sessions.exporting import Part


class LinesRoute(DoorRoute):
    """For bodies of JSON lines alone; every other one goes to the route after it."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if media_type(Headers(scope=scope)) != LINES:
            return Match.NONE, {}
        return super().matches(scope)


class LinesResponse(StreamingResponse):
    """The base class leaves what a client that goes away was sent last in a ring of frames, until the collector comes
    by; it may be 30 MB."""

    def __init__(self, lines: AsyncGenerator[bytes, None], headers: dict[str, str]) -> None:
        super().__init__(lines, media_type=LINES, headers=headers)
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._lines):
            await while_there(receive, self.stream_response(send))


router = APIRouter(
    prefix="/v1/sessions", tags=["sessions"], dependencies=[Bearer], responses=PROBLEMS, route_class=DoorRoute
)
imports = APIRouter(prefix="/v1/sessions", dependencies=[Bearer], route_class=LinesRoute)


@imports.post("", include_in_schema=False)
async def import_session(request: Request, services: Context, tenant: Tenant, key: Key) -> Response:
    lines = getattr(request.state, "body", [])
    brought = await apart(request.state.large, lambda: read_lines(lines, tenant, key, services.default_model))
    return _created(await services.transfers.imports.bring(brought))


_EXPORT: dict[int | str, dict[str, Any]] = {
    200: {"description": "JSON lines", "content": {LINES: {"schema": {"type": "string"}}}}
}


@router.post("/{session_id}/fork", status_code=201, response_model=SessionAnswer)
async def fork_session(session: Opened, services: Context, key: Key, body: ForkRequest | None = None) -> Response:
    """A new session with everything up to the last closed batch at or below `at_seq`, files and records too."""
    at_seq = body.at_seq if body else None
    return _created(await services.transfers.forks.fork(session.tenant, session.id, at_seq, key))


@router.get("/{session_id}/export", response_class=Response, responses=_EXPORT)
async def export_session(session: Opened, services: Context) -> Response:
    """The session as JSON lines that `POST /v1/sessions` takes: settings, messages, records, files."""
    headers = {**DATA_HEADERS, "Content-Disposition": f'attachment; filename="{session.id}.jsonl"'}
    return LinesResponse(_lines(services.transfers.exports.parts(session)), headers)


async def _lines(parts: AsyncGenerator[Part, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(parts):
        async for part in parts:
            yield encode(line_of(part)) + b"\n"


def _created(session: Session) -> Response:
    return JsonResponse(session_json(session), status_code=201, headers={"Location": f"/v1/sessions/{session.id}"})
