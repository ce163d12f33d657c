"""Every error as an RFC 9457 problem document. Input values and internals never appear in one."""

import logging
import re
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.api.json_text import JsonResponse
from app.errors import HangoError, InvalidPayload, InvalidRequest, StoreUnavailable, Unauthorized

log = logging.getLogger(__name__)

_CODES = {
    400: "invalid_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
}
# How pydantic marks the members of a union inside a place: no part of the client's own names.
_UNION_MEMBER = re.compile(r"(constrained-|nullable\[|function-|union\[|is-instance)?(str|list|dict|int)\b.*")
MAX_NAME = 64


class ProblemResponse(JsonResponse):
    media_type = "application/problem+json"


def problem(error: HangoError) -> ProblemResponse:
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else None
    return _document(error.status, error.code, error.title, error.detail or f"{error.title}.", error.extra, headers)


def _document(
    status: int, code: str, title: str, detail: str, extra: dict[str, Any], headers: dict[str, str] | None
) -> ProblemResponse:
    named = {"type": f"urn:hango:problem:{code}", "title": title, "status": status, "detail": detail, "code": code}
    return ProblemResponse({**extra, **named}, status, headers)


def install(app: FastAPI) -> None:
    app.add_exception_handler(HangoError, _known)
    app.add_exception_handler(RequestValidationError, _schema)
    app.add_exception_handler(HTTPException, _framework)
    app.add_exception_handler(Exception, _unknown)


async def _known(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, HangoError)
    if isinstance(error, StoreUnavailable):
        log.warning("request failed: %s", error.detail, extra={"path": request.url.path})
    elif error.status >= 500:
        log.error("request failed", exc_info=error, extra={"path": request.url.path})
    return problem(error)


async def _schema(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, RequestValidationError)
    found = [{"field": _field(item["loc"]), "rule": str(item["msg"])} for item in error.errors()]
    # Each member of a union complains: those that came further know what was meant.
    errors = [item for item in found if not any(other["field"].startswith(f"{item['field']}.") for other in found)]
    kind = InvalidPayload if any(item["loc"][0] == "body" for item in error.errors()) else InvalidRequest
    return problem(kind(f"{errors[0]['field']}: {errors[0]['rule']}", errors=errors))


def _field(loc: tuple[int | str, ...]) -> str:
    """`content.0.type`; `body` for the whole of it. Names come from the client: they are cut."""
    parts = [str(part)[:MAX_NAME] for part in loc[1:] if isinstance(part, int) or not _UNION_MEMBER.fullmatch(part)]
    return ".".join(parts) or str(loc[0])


async def _framework(request: Request, error: Exception) -> ProblemResponse:
    """What the router itself refuses: an unknown path, a method that a path does not have."""
    assert isinstance(error, HTTPException)
    status = error.status_code
    detail = "There is nothing at this path." if status == 404 else f"{error.detail}."
    headers = dict(error.headers or {})
    return _document(status, _CODES.get(status, "http_error"), str(error.detail), detail, {}, headers)


async def _unknown(request: Request, error: Exception) -> ProblemResponse:
    log.error("request raised", exc_info=error, extra={"path": request.url.path})
    return problem(HangoError("An internal error; the log has the details."))
