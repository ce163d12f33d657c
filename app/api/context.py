"""The window of a session: gauge, view, records, and a compaction on request."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.apart import MANY_ROWS, apart
from app.api.answers import (
    PROBLEMS,
    CompactionAnswer,
    ContextAnswer,
    CutAnswer,
    FoldAnswer,
    Page,
    ShapingAnswer,
    ViewAnswer,
)
from app.api.gauge_svg import MOST_BARS, gauge_svg
from app.api.json_text import JsonResponse
from app.api.presence import while_there
from app.api.render import page_json, record_json
from app.api.requests import Bearer, Context, DoorRoute, Key, Opened
from app.api.schemas import CompactRequest
from app.context.history import TOLD_BY, bars_of
from app.sessions.service import View

SVG = "image/svg+xml"
# Opened as a page of its own it may do nothing but be drawn, with the style it brings.
PICTURE_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
}
# Two or three a turn: the picture is of the newest thousands of turns.
NEWEST_EVENTS = 10_000

PREFIX = "/v1/sessions/{session_id}"
router = APIRouter(prefix=PREFIX, tags=["context"], dependencies=[Bearer], responses=PROBLEMS, route_class=DoorRoute)


@router.get("/context", response_model=ContextAnswer)
async def show_context(session: Opened, services: Context) -> Response:
    """The counters, and the gauge of the working window."""
    return JsonResponse(asdict(await services.sessions.context(session.tenant, session.id)))


@router.get("/context.svg", response_class=Response, responses={200: {"content": {SVG: {}}}})
async def show_gauge(session: Opened, services: Context) -> Response:
    """The gauge as a picture: the ring of `fill`, and each turn's input tokens with the marks and compactions."""
    gauge = await services.sessions.context(session.tenant, session.id)
    events = await services.events.newest(session.id, TOLD_BY, NEWEST_EVENTS)
    picture = gauge_svg(gauge, bars_of(events, MOST_BARS))
    return Response(picture, headers=PICTURE_HEADERS, media_type=SVG)


@router.get("/context/view", response_model=ViewAnswer)
async def show_view(session: Opened, services: Context) -> Response:
    """What the model sees now, and for each shaped block the records that shaped it."""
    view = await services.sessions.view(session.tenant, session.id)
    return await apart(len(view.messages) > MANY_ROWS, lambda: JsonResponse(_view_json(view)))


def _view_json(view: View) -> dict[str, Any]:
    messages = [
        {
            "role": message.role,
            "content": list(message.content),
            "seqs": list(source.seqs),
            "shaped": [{"block": block, "record_ids": list(ids)} for block, ids in source.shaped],
        }
        for message, source in zip(view.messages, view.sources, strict=True)
    ]
    points = [{"message": point.message, "block": point.block} for point in view.breakpoints]
    return {"messages": messages, "breakpoints": points}


@router.get("/context/records", response_model=Page[CutAnswer | FoldAnswer | ShapingAnswer])
async def list_records(session: Opened, services: Context) -> Response:
    """The records in force, newest first."""
    records = await services.sessions.records(session.tenant, session.id)
    return JsonResponse(page_json([record_json(record) for record in records], None))


@router.post("/compact", response_model=CompactionAnswer)
async def compact(
    request: Request,
    session: Opened,
    services: Context,
    key: Key,
    body: CompactRequest | None = None,
) -> Response:
    """Compacts the view now, whatever the marks say; `dry_run` says what would happen, without a call or a write."""
    asked = body or CompactRequest()
    if asked.dry_run:
        return JsonResponse(await services.turns.foresee(session))
    compacting = services.turns.compact(session, asked.instructions or "", key)
    return JsonResponse(await while_there(request.receive, compacting))
