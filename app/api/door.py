"""The outermost door: who is asking, and whether the body is fit to be read. Plain ASGI, so it also guards streams."""

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import telemetry
from app.apart import LARGE_BYTES
from app.api.json_body import LINES, Body, media_type, parse_body, parse_lines
from app.api.problems import problem
from app.conversation.api_key import ApiKey, digest_of
from app.errors import BodyTooLarge, Forbidden, HangoError, Unauthorized

OPEN_PATHS = frozenset({"/livez", "/readyz"})
LOCAL_TENANT = "local"
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
# The ids in a path, for the log.
_IDS = re.compile(r"/v1/sessions/(?P<session>[\w-]{1,64})(?:/turns/(?P<run>[\w-]{1,64}))?", re.ASCII)


class Gone(Exception):
    """The client left before its body ended: nothing may be done with what came."""


class Door:
    """Sets `state.tenant`, `state.large` (its body is) and `state.body` (the JSON of a request with a body, cleaned).

    HEAD is GET, unstreamed.
    """

    def __init__(self, app: ASGIApp, keys: Sequence[ApiKey], max_body_bytes: int) -> None:
        self._app = app
        self._keys = keys
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", "headers": _set(scope["headers"], b"accept", b"application/json")}
        headers = Headers(scope=scope)
        # Each request is a task of its own, up to the last line that the web server writes about it.
        telemetry.enter(path=scope["path"], **_ids(scope["path"]))
        try:
            scope.setdefault("state", {})["tenant"] = self._admit(scope, headers)
            body = await _read(receive, headers, self._max_body_bytes)
            scope["state"]["large"] = len(body) > LARGE_BYTES
            if body and _holds_lines(scope, headers):
                scope["state"]["body"] = await parse_lines(body)
            elif body:
                scope["state"]["body"] = await parse_body(body)
                # A body that parsed as JSON is JSON, whatever a client's default content type says.
                scope["headers"] = _set(scope["headers"], b"content-type", b"application/json")
        except Gone:
            return
        except HangoError as error:
            await problem(error)(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    def _admit(self, scope: Scope, headers: Headers) -> str:
        if scope["path"] in OPEN_PATHS:
            return LOCAL_TENANT
        if self._keys:
            return tenant_of(self._keys, headers.get("authorization", ""))
        _check_local(headers)
        return LOCAL_TENANT


def tenant_of(keys: Sequence[ApiKey], authorization: str) -> str:
    """Compares with every key, each in constant time. Raises Unauthorized."""
    scheme, _, key = authorization.partition(" ")
    digest = digest_of(key.strip())
    found = [known.tenant for known in keys if known.has(digest)]
    if scheme.lower() != "bearer" or not found:
        raise Unauthorized("Send 'Authorization: Bearer <key>' with a key of this server.")
    return found[0]


def _ids(path: str) -> dict[str, str]:
    found = _IDS.match(path)
    return {name: value for name, value in found.groupdict().items() if value} if found else {}


def _holds_lines(scope: Scope, headers: Headers) -> bool:
    """An export that comes back; everywhere else the type of the body does not count."""
    return (scope["method"], scope["path"], media_type(headers)) == ("POST", "/v1/sessions", LINES)


def _set(headers: Iterable[tuple[bytes, bytes]], name: bytes, value: bytes) -> list[tuple[bytes, bytes]]:
    return [*(header for header in headers if header[0] != name), (name, value)]


def _check_local(headers: Mapping[str, str]) -> None:
    """Without keys a page of another site must not reach the server: neither by its origin nor by a renamed host."""
    host = headers.get("host", "").lower()
    if _host_name(host) not in LOOPBACK_HOSTS:
        raise Forbidden("Without API keys only loopback hosts are served; the Host header names another one.")
    origin = headers.get("origin")
    foreign = origin is not None and origin.lower().partition("://")[2] != host
    if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Forbidden("Without API keys only same-origin requests are served.")


def _host_name(host: str) -> str | None:
    try:
        return (urlsplit(f"//{host}").hostname or "").removesuffix(".")  # a fully qualified name ends with a dot
    except ValueError:  # brackets that hold no IPv6 address
        return None


async def _read(receive: Receive, headers: Headers, limit: int) -> Body:
    """The whole body. Raises BodyTooLarge before more than `limit` bytes are held, and Gone."""
    declared = headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limit:
        raise BodyTooLarge(
            f"The body has {declared} bytes; the limit is {limit}.", body_bytes=int(declared), limit_bytes=limit
        )
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body += message.get("body", b"")
        if len(body) > limit:
            raise BodyTooLarge(f"The body has more than {limit} bytes.", limit_bytes=limit)
        if not message.get("more_body", False):
            return body


def _replay(body: Body, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
