"""Files of a session: always downloads, never pages."""

from urllib.parse import quote

from fastapi import APIRouter
from starlette.responses import Response

from app.api.answers import PROBLEMS, FileAnswer, Page
from app.api.json_text import JsonResponse
from app.api.render import file_json, page_json
from app.api.requests import Bearer, Context, Opened

router = APIRouter(prefix="/v1/sessions/{session_id}/files", tags=["files"], dependencies=[Bearer], responses=PROBLEMS)

_TEXT = (".txt", ".md", ".json", ".csv", ".log")


@router.get("", response_model=Page[FileAnswer])
async def list_files(session: Opened, services: Context) -> Response:
    files = await services.files.list(session.id, "/")
    return JsonResponse(page_json([file_json(info) for info in files], None))


@router.get("/{path:path}", response_class=Response)
async def read_file(session: Opened, services: Context, path: str) -> Response:
    data = await services.files.read(session.id, f"/{path}")
    name = quote(path.rsplit("/", 1)[-1], safe="")
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    kind = "text/plain; charset=utf-8" if path.endswith(_TEXT) else "application/octet-stream"
    return Response(data, headers=headers, media_type=kind)
