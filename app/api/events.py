"""The event log of a session, as a stream or as a list."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from app.api.answers import GONE, PROBLEMS
from app.api.event_types import STREAM, EventPage
from app.api.json_text import JsonResponse
from app.api.render import page_json
from app.api.requests import (
    DEFAULT_LIMIT,
    NUMBER,
    AfterNumber,
    Bearer,
    Context,
    Limit,
    Opened,
    limit_of,
    number,
    wants_stream,
)
from app.api.sse import EventStream, event_json
from app.errors import CursorTooOld

router = APIRouter(
    prefix="/v1/sessions/{session_id}/events", tags=["events"], dependencies=[Bearer], responses=PROBLEMS
)

RunFilter = Annotated[str | None, Query(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Events of this run only.")]

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A page of events, or the live stream (each frame's data is one event)",
        "content": STREAM,
    },
    **GONE,
}


@router.get("", response_model=EventPage, responses=_ANSWERS)
async def read_events(
    request: Request,
    session: Opened,
    services: Context,
    after: AfterNumber = None,
    run_id: RunFilter = None,
    limit: Limit = DEFAULT_LIMIT,
    last_event_id: Annotated[str | None, Header(pattern=NUMBER)] = None,
) -> Response:
    """Events after `Last-Event-ID` or `after`, oldest first; without either from the oldest that is left on."""
    cursor = number(last_event_id or after)
    if wants_stream(request):
        await _check(services, session.id, cursor)
        return EventStream(services.turns.follow(session.id, cursor, run_id), services.ping_s)
    found = await services.events.after(session.id, cursor, limit_of(limit), run_id)
    await _check(services, session.id, cursor)  # after the look: what it missed was gone by then
    following = found.rows[-1].seq if found.more else None
    return JsonResponse(page_json([event_json(event) for event in found.rows], following))


async def _check(services: Context, session_id: str, cursor: int) -> None:
    """Raises CursorTooOld. A filter by run changes nothing: which events it would have kept is not known any more."""
    if cursor and (oldest := await services.events.oldest(session_id)) > cursor + 1:
        raise CursorTooOld(oldest)
