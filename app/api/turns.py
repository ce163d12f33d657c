"""Turns: post, list, show, answer, cancel."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.apart import apart
from app.api.answers import GONE, PROBLEMS, Page, RunAnswer
from app.api.event_types import STREAM
from app.api.json_text import JsonResponse
from app.api.presence import while_there
from app.api.render import page_json, run_json
from app.api.requests import (
    DEFAULT_LIMIT,
    AfterNumber,
    Bearer,
    Context,
    DoorRoute,
    Key,
    Limit,
    Opened,
    RunId,
    Services,
    limit_of,
    number,
    wants_stream,
)
from app.api.schemas import ApprovalAnswers, ToolResults, TurnCreate
from app.api.share import end_body
from app.api.sse import EventStream
from app.conversation.run import Run, RunStatus
from app.conversation.session import Idempotency, Session
from app.errors import CursorTooOld
from app.turns.acceptance import accept_input
from app.turns.answers import Decision, read_results

router = APIRouter(
    prefix="/v1/sessions/{session_id}/turns",
    tags=["turns"],
    dependencies=[Bearer],
    responses=PROBLEMS,
    route_class=DoorRoute,
)

_POSTED: dict[int | str, dict[str, Any]] = {
    200: {
        "model": RunAnswer,
        "description": "The events (Accept: text/event-stream) or the finished run (wait=true)",
        "content": STREAM,
    },
    202: {"model": RunAnswer, "description": "Accepted; `Location` names the run"},
    **GONE,
}


@router.post("", status_code=202, responses=_POSTED)
async def post_turn(
    request: Request,
    session: Opened,
    services: Context,
    key: Key,
    turn: TurnCreate,
    wait: Annotated[bool, Query(description="Answer when the run has ended.")] = False,
    queue: Annotated[bool, Query(description="Queue the turn when the session is busy.")] = False,
) -> Response:
    """Starts a turn. With `Accept: text/event-stream` the answer is its event stream."""
    run, first = await _accept(request, session, services, turn, queue, key)
    headers = {"Location": f"/v1/sessions/{session.id}/turns/{run.id}"}
    if wants_stream(request):
        if first is None:
            await _check_events(services, run)
        after = 0 if first is None else first - 1
        follower = services.turns.follow(session.id, after, run.id, until=run.id)
        return EventStream(follower, services.ping_s, headers)
    if wait:
        run_id = run.id
        del run  # it has the input too
        ended = await while_there(request.receive, services.turns.wait(session.id, run_id))
        run = ended or await services.turns.runs.get(session.id, run_id)
    unfinished = not wait or run.status in (RunStatus.QUEUED, RunStatus.RUNNING)
    return JsonResponse(await _whole(services, run), status_code=202 if unfinished else 200, headers=headers)


async def _accept(
    request: Request, session: Session, services: Services, turn: TurnCreate, queue: bool, key: Idempotency | None
) -> tuple[Run, int | None]:
    """As `Turns.post`. What was posted is let go: its run may take hours."""
    accept = partial(accept_input, turn.content, turn.model, turn.max_tokens, turn.metadata)
    run_input = await apart(request.state.large, accept)
    posted = await services.turns.post(session, run_input, queue, key)
    turn.content = ""  # the framework holds the payload until there is an answer
    end_body(request.scope["state"])
    return posted


@router.get("", response_model=Page[RunAnswer])
async def list_turns(
    session: Opened, services: Context, after: AfterNumber = None, limit: Limit = DEFAULT_LIMIT
) -> Response:
    found = await services.turns.runs.list(session.id, number(after), limit_of(limit))
    texts = await services.turns.final_texts(session.id, found.rows)
    shown = [run_json(run, texts.get(run.id), await services.turns.awaited(run)) for run in found.rows]
    return JsonResponse(page_json(shown, found.rows[-1].turn if found.more else None))


@router.get("/{run_id}", response_model=RunAnswer)
async def show_turn(session: Opened, services: Context, run_id: RunId) -> Response:
    return JsonResponse(await _whole(services, await services.turns.runs.get(session.id, run_id)))


@router.post("/{run_id}/cancel", status_code=202, response_model=RunAnswer)
async def cancel_turn(session: Opened, services: Context, run_id: RunId) -> Response:
    """Idempotent: a run that has ended stays as it is."""
    return JsonResponse(await _whole(services, await services.turns.cancel(session.id, run_id)), status_code=202)


@router.post("/{run_id}/tool_results", response_model=RunAnswer)
async def post_tool_results(
    request: Request, session: Opened, services: Context, run_id: RunId, key: Key, body: ToolResults
) -> Response:
    """Results of the client's own tools. The run goes on once nothing is awaited any more."""
    results = await apart(request.state.large, lambda: read_results(body.model_dump()["results"]))
    run = await services.turns.take_results(session, run_id, results, key)
    return JsonResponse(await _whole(services, run))


@router.post("/{run_id}/approvals", response_model=RunAnswer)
async def post_approvals(
    session: Opened, services: Context, run_id: RunId, key: Key, body: ApprovalAnswers
) -> Response:
    """What a person decides on calls that wait for it: what is allowed runs, what is denied gets an error result."""
    decisions = [
        Decision(one.tool_use_id, one.decision == "allow", one.message, one.for_session, f"approvals.{index}")
        for index, one in enumerate(body.approvals)
    ]
    return JsonResponse(await _whole(services, await services.turns.take_decisions(session, run_id, decisions, key)))


async def _check_events(services: Context, run: Run) -> None:
    """A repeated post of a run whose events were pruned: a stream without an end would only be resumed for ever."""
    if not (await services.events.after(run.session_id, 0, 1, run.id)).rows:
        raise CursorTooOld(await services.events.oldest(run.session_id))


async def _whole(services: Context, run: Run) -> dict[str, Any]:
    texts = await services.turns.final_texts(run.session_id, [run])
    return run_json(run, texts.get(run.id), await services.turns.awaited(run))
