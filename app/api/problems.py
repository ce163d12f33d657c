"""Every error as an RFC 9457 problem document. Input values and internals never appear in one."""

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app.api.json_text import JsonResponse
from app.errors import BodyTooLarge, HangoError, InvalidPayload, InvalidRequest, NotFound, Unauthorized

log = logging.getLogger(__name__)


class ProblemResponse(JsonResponse):
    media_type = "application/problem+json"


def problem(error: HangoError) -> ProblemResponse:
    body: dict[str, Any] = {
        **error.extra,
        "type": f"urn:hango:problem:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
    }
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else None
    return ProblemResponse(body, status_code=error.status, headers=headers)


def install(app: FastAPI) -> None:
    app.add_exception_handler(HangoError, _known)
    app.add_exception_handler(RequestValidationError, _schema)
    app.add_exception_handler(HTTPException, _framework)
    app.add_exception_handler(Exception, _unknown)


async def _known(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, HangoError)
    if error.status >= 500:
        log.error("request failed", exc_info=error, extra={"path": request.url.path})
    return problem(error)


async def _schema(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, RequestValidationError)
    errors = [{"field": _field(item["loc"]), "rule": str(item["msg"])} for item in error.errors()]
    first = errors[0]
    return problem(InvalidPayload(f"{first['field']}: {first['rule']}", errors=errors))


def _field(loc: tuple[int | str, ...]) -> str:
    """`body.content.0.type` without the word `body`, the other places (query, path, header) named."""
    return ".".join(str(part) for part in (loc[1:] if loc[0] == "body" and len(loc) > 1 else loc))


async def _framework(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return problem(NotFound("There is nothing at this path."))
    known = BodyTooLarge if error.status_code == 413 else InvalidRequest
    answer = problem(known(str(error.detail)))
    if error.status_code not in (400, 413):
        body = {"type": "about:blank", "title": error.detail, "status": error.status_code, "detail": error.detail}
        answer = ProblemResponse({**body, "code": _CODES.get(error.status_code, "http_error")}, error.status_code)
    answer.headers.update(error.headers or {})
    return answer


_CODES = {405: "method_not_allowed", 406: "not_acceptable", 415: "unsupported_media_type"}


async def _unknown(request: Request, error: Exception) -> ProblemResponse:
    log.error("request raised", exc_info=error, extra={"path": request.url.path})
    return problem(HangoError("An internal error; the log has the details."))
