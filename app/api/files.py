"""Files of a session: always downloads, never pages."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path
from starlette.responses import Response

from app.api.answers import PROBLEMS, FileAnswer, Page
from app.api.json_text import JsonResponse
from app.api.render import file_json, page_json
from app.api.requests import DEFAULT_LIMIT, AfterNumber, Bearer, Context, Limit, Opened, limit_of, number

router = APIRouter(prefix="/v1/sessions/{session_id}/files", tags=["files"], dependencies=[Bearer], responses=PROBLEMS)

VirtualPath = Annotated[
    str, Path(description="A path of the list, without its first slash.", json_schema_extra={"format": "virtual-path"})
]
_TEXT = (".txt", ".md", ".json", ".csv", ".log")


@router.get("", response_model=Page[FileAnswer])
async def list_files(
    session: Opened, services: Context, after: AfterNumber = None, limit: Limit = DEFAULT_LIMIT
) -> Response:
    """By path, with what was put away in them and why."""
    start, size = number(after), limit_of(limit)
    files = await services.sessions.listed_files(session.tenant, session.id)
    following = start + size if len(files) > start + size else None
    return JsonResponse(page_json([file_json(*file) for file in files[start : start + size]], following))


@router.get("/{path:path}", response_class=Response)
async def read_file(session: Opened, services: Context, path: VirtualPath) -> Response:
    data = await services.files.read(session.id, f"/{path}")
    name = quote(path.rsplit("/", 1)[-1], safe="")
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    kind = "text/plain; charset=utf-8" if path.endswith(_TEXT) else "application/octet-stream"
    return Response(data, headers=headers, media_type=kind)
