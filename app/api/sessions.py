"""Sessions: open, import, list, show, change, close, delete; their transcript and usage."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.apart import apart
from app.api.answers import (
    PROBLEMS,
    CreatedSession,
    MessageAnswer,
    Page,
    SessionAnswer,
    UsageTotals,
)
from app.api.json_body import LINES
from app.api.json_text import JsonResponse
from app.api.render import message_json, page_json, session_json, usage_json
from app.api.requests import (
    DEFAULT_LIMIT,
    After,
    AfterNumber,
    Bearer,
    Context,
    DoorRoute,
    Key,
    Limit,
    Opened,
    Tenant,
    limit_of,
    number,
)
from app.api.schemas import SessionCreate, SessionPatch
from app.sessions.opening import Opening

router = APIRouter(
    prefix="/v1/sessions", tags=["sessions"], dependencies=[Bearer], responses=PROBLEMS, route_class=DoorRoute
)


_LINES = {"requestBody": {"content": {LINES: {"schema": {"type": "string", "description": "What `export` gave."}}}}}


@router.post("", status_code=201, response_model=CreatedSession, openapi_extra=_LINES)
async def open_session(
    request: Request,
    services: Context,
    tenant: Tenant,
    key: Key,
    body: SessionCreate | None = None,
    repair: Annotated[bool, Query(description="Store the smallest repair of a broken import and report it.")] = False,
) -> Response:
    """Opens a session; `messages` imports a transcript."""
    payload = body or SessionCreate()
    posted = await apart(request.state.large, lambda: payload.model_dump(exclude_none=True))
    opening = Opening(tenant, **{"model": services.default_model, **posted}, repair=repair, key=key)
    session, _, repairs = await services.sessions.open(opening)
    answer: dict[str, Any] = session_json(session)
    if repair:
        answer["repairs"] = [asdict(item) for item in repairs]
    return JsonResponse(answer, status_code=201, headers={"Location": f"/v1/sessions/{session.id}"})


@router.get("", response_model=Page[SessionAnswer])
async def list_sessions(
    services: Context, tenant: Tenant, after: After = None, limit: Limit = DEFAULT_LIMIT
) -> Response:
    page = await services.sessions.list(tenant, after, limit_of(limit))
    return JsonResponse(page_json([session_json(session) for session in page.data], page.next))


@router.get("/{session_id}", response_model=SessionAnswer)
async def show_session(session: Opened) -> Response:
    return JsonResponse(session_json(session))


@router.patch("/{session_id}", response_model=SessionAnswer)
async def change_session(session: Opened, services: Context, body: SessionPatch) -> Response:
    """What is left out stays as it is."""
    changed = await services.sessions.update(session.tenant, session.id, body.title, body.metadata, body.model)
    return JsonResponse(session_json(changed))


@router.delete("/{session_id}", status_code=204, response_class=Response)
async def delete_session(session: Opened, services: Context) -> Response:
    """Deletes the session with its transcript and files; 409 while a run is live."""
    await services.sessions.delete(session.tenant, session.id)
    return Response(status_code=204)


@router.post("/{session_id}/close", response_model=SessionAnswer)
async def close_session(session: Opened, services: Context) -> Response:
    """It takes no turns any more; with memory on, what should last of it is noted. Idempotent; 409 when it is busy."""
    return JsonResponse(session_json(await services.closer.close(session.tenant, session.id)))


@router.get("/{session_id}/messages", response_model=Page[MessageAnswer])
async def list_messages(
    session: Opened,
    services: Context,
    after: AfterNumber = None,
    limit: Limit = DEFAULT_LIMIT,
    visible_to: Literal["user", "agent", "all"] = "all",
) -> Response:
    """The transcript as stored: whole, never compacted."""
    page = await services.sessions.messages(session.tenant, session.id, number(after), limit_of(limit), visible_to)
    return JsonResponse(page_json([message_json(row) for row in page.data], page.next))


@router.get("/{session_id}/usage", response_model=UsageTotals)
async def show_usage(session: Opened) -> Response:
    """Token totals by purpose, of the turns that have ended."""
    return JsonResponse(usage_json(session.usage))
