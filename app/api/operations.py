"""What operators and load balancers ask."""

from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import PROBLEMS, Health, ModelAnswer, Page
from app.api.json_text import JsonResponse
from app.api.render import model_json, page_json
from app.api.requests import Bearer, Context

router = APIRouter(tags=["operations"], responses={503: PROBLEMS[503]})


@router.get("/livez", response_model=Health)
async def livez() -> Response:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@router.get("/readyz", response_model=Health)
async def readyz(services: Context) -> Response:
    """Database reachable, schema at or ahead of this release, files writable; 503 says what is wrong."""
    await services.database.check()
    await services.files.check()
    return JsonResponse({"status": "ok"})


@router.get("/v1/models", response_model=Page[ModelAnswer], dependencies=[Bearer], responses=PROBLEMS)
async def list_models(services: Context) -> Response:
    """The profile table in force."""
    return JsonResponse(page_json([model_json(profile) for profile in services.profiles.values()], None))
