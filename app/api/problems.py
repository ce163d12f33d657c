"""Every error as an RFC 9457 problem document. Input values and internals never appear in one."""

import logging
import re
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from app.api.json_text import JsonResponse
from app.errors import Draining, HangoError, InvalidPayload, InvalidRequest, StoreUnavailable, Unauthorized

log = logging.getLogger(__name__)

_CODES = {
    400: "invalid_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
}
_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")
# How pydantic marks the members of a union inside a place: no part of the client's own names.
_UNION_MEMBER = re.compile(r"(constrained-|nullable\[|function-|union\[|is-instance)?(str|list|dict|int)\b.*")
MAX_NAME = 64
MAX_ERRORS = 20  # that a document lists


class ProblemResponse(JsonResponse):
    media_type = "application/problem+json"


def problem(error: HangoError) -> ProblemResponse:
    detail = error.detail or f"{error.title}."
    return _document(error.status, error.code, error.title, detail, error.extra, _headers(error))


def _headers(error: HangoError) -> dict[str, str]:
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": "Bearer"}
    return {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}


def _document(
    status: int, code: str, title: str, detail: str, extra: dict[str, Any], headers: dict[str, str]
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
    if isinstance(error, StoreUnavailable | Draining):
        log.warning("request failed: %s", error.detail, extra={"path": request.url.path})
    elif error.status >= 500:
        log.error("request failed", exc_info=error, extra={"path": request.url.path})
    return problem(error)


async def _schema(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, RequestValidationError)
    found = [(item["loc"][0], _place(item["loc"]), _rule(item)) for item in error.errors()]
    # Each member of a union complains: those that came further know what was meant.
    parents = {place[:length] for _, place, _ in found for length in range(1, len(place))}
    last = [item for item in found if item[1] not in parents]
    errors = [{"field": ".".join(place) or str(part), "rule": rule} for part, place, rule in last[:MAX_ERRORS]]
    kind = InvalidPayload if any(part == "body" for part, _, _ in found) else InvalidRequest
    more = {"more_errors": len(last) - MAX_ERRORS} if len(last) > MAX_ERRORS else {}
    return problem(kind(f"{errors[0]['field']}: {errors[0]['rule']}", errors=errors, **more))


def _rule(item: dict[str, Any]) -> str:
    return str(item["msg"]).removeprefix("Value error, ")  # what pydantic puts before a rule of our own


def _place(loc: tuple[int | str, ...]) -> tuple[str, ...]:
    """The parts of `content.0.type`; none for the whole body. Names come from the client: they are cut."""
    return tuple(str(part)[:MAX_NAME] for part in loc[1:] if isinstance(part, int) or not _UNION_MEMBER.fullmatch(part))


async def _framework(request: Request, error: Exception) -> ProblemResponse:
    """What the router itself refuses: an unknown path, a method that a path does not have."""
    assert isinstance(error, HTTPException)
    status = error.status_code
    detail = "There is nothing at this path." if status == 404 else f"{error.detail}."
    headers = {"Allow": _allowed(request)} if status == 405 else dict(error.headers or {})
    return _document(status, _CODES.get(status, "http_error"), str(error.detail), detail, {}, headers)


def _allowed(request: Request) -> str:
    """Every method of this path; the router itself names those of its first route alone. The door answers HEAD."""
    found = [method for method in _METHODS if _has(request, method)]
    return ", ".join([*found, "HEAD"] if "GET" in found else found)


def _has(request: Request, method: str) -> bool:
    scope = {**request.scope, "method": method}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)


async def _unknown(request: Request, error: Exception) -> ProblemResponse:
    log.error("request raised", exc_info=error, extra={"path": request.url.path})
    return problem(HangoError("An internal error; the log has the details."))
