"""What operators and load balancers ask."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from app.api.answers import PROBLEMS, Health, ModelAnswer, Page, Ready
from app.api.json_text import JsonResponse
from app.api.readiness import Finding
from app.api.render import model_json, page_json
from app.api.requests import Bearer, Context
from app.errors import NotFound

router = APIRouter(tags=["operations"], responses={503: PROBLEMS[503]})


@router.get("/livez", response_model=Health)
async def livez() -> Response:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@router.get("/readyz", response_model=Ready)
async def readyz(services: Context) -> Response:
    """Database reachable, schema at or ahead of this release, files writable; 503 lists all that is wrong."""
    found = await services.readiness.findings()
    checks = [_check_json(finding) for finding in found]
    for error in (finding.error for finding in found if finding.error):
        raise type(error)(error.detail, checks=checks)
    return JsonResponse({"status": "ok", "checks": checks})


def _check_json(finding: Finding) -> dict[str, Any]:
    error = finding.error
    return {"name": finding.name, "ok": not error, **({"code": error.code, "detail": error.detail} if error else {})}


@router.get("/metrics", response_class=PlainTextResponse, dependencies=[Bearer], responses=PROBLEMS)
async def metrics(request: Request, services: Context) -> Response:
    """What this process counted since its start, and how it is, for Prometheus."""
    if services.metrics is None:
        raise NotFound("Metrics are off (HANGO_METRICS).")
    accept = request.headers.get("accept", "")
    page, content_type = await asyncio.to_thread(services.metrics.render, accept)
    return Response(page, media_type=content_type)


@router.get("/v1/models", response_model=Page[ModelAnswer], dependencies=[Bearer], responses=PROBLEMS)
async def list_models(services: Context) -> Response:
    """The profile table in force."""
    return JsonResponse(page_json([model_json(profile) for profile in services.profiles.values()], None))
