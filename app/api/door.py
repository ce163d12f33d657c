"""The outermost door: who is asking, and whether the body is fit to be read. Plain ASGI, so it also guards streams."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import telemetry
from app.apart import LARGE_BYTES
from app.api.json_body import LINES, Body, media_type, parse_body, parse_lines
from app.api.problems import problem
from app.api.share import Held, Sender, Shares, weight
from app.conversation.api_key import ApiKey, digest_of
from app.errors import BodyTooLarge, Forbidden, HangoError, NotFound, Unauthorized

OPEN_PATHS = frozenset({"/livez", "/readyz"})
LOCAL_TENANT = "local"
# The whole of a Host header: a name with anything else in it would be read otherwise elsewhere.
_LOOPBACK = re.compile(r"(127\.0\.0\.1\.?|localhost\.?|\[::1\])(:[0-9]{0,5})?")
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
        self._shares: dict[str, Shares] = defaultdict(Shares)

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
            tenant = scope.setdefault("state", {})["tenant"] = self._admit(scope, headers)
            if scope["path"].endswith("\n"):
                raise NotFound("There is nothing at this path.")  # the router's `$` would not see the line break
        except HangoError as error:
            await problem(error)(scope, receive, send)
            return
        held = scope["state"]["held"] = Held(self._shares[tenant])
        try:
            await self._let_in(held, scope, headers, receive, send)
        finally:
            held.end()

    async def _let_in(self, held: Held, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        try:
            body = await _read(receive, headers, self._max_body_bytes, held)
            scope["state"]["large"] = len(body) > LARGE_BYTES
            if (work := weight(body)) > LARGE_BYTES:
                await held.work(work)
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
        replay = _replay(body, receive)
        del body  # the route lets it go before it answers
        await self._app(scope, replay, Sender(scope, receive, send))

    def _admit(self, scope: Scope, headers: Headers) -> str:
        if scope["path"] in OPEN_PATHS:
            return LOCAL_TENANT
        if self._keys:
            return tenant_of(self._keys, headers.getlist("authorization"))
        _check_local(headers)
        return LOCAL_TENANT


def tenant_of(keys: Sequence[ApiKey], authorizations: Sequence[str]) -> str:
    """Compares with every key, each in constant time. Raises Unauthorized, for two headers too: which one counts?"""
    scheme, _, key = (authorizations[0] if len(authorizations) == 1 else "").partition(" ")
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


def _check_local(headers: Headers) -> None:
    """Without keys a page of another site must not reach the server: neither by its origin nor by a renamed host."""
    hosts = [host.lower() for host in headers.getlist("host")]
    if len(hosts) != 1 or not _LOOPBACK.fullmatch(hosts[0]):
        raise Forbidden("Without API keys only loopback hosts are served; the Host header names another one.")
    own = (f"http://{hosts[0]}", f"https://{hosts[0]}")
    foreign = any(origin.lower() not in own for origin in headers.getlist("origin"))
    if foreign or any(site not in ("none", "same-origin") for site in headers.getlist("sec-fetch-site")):
        raise Forbidden("Without API keys only same-origin requests are served.")


async def _read(receive: Receive, headers: Headers, limit: int, held: Held) -> Body:
    """The whole body. Raises BodyTooLarge before more than `limit` bytes are held, TooMuchAtOnce, and Gone."""
    declared = headers.get("content-length", "0")
    size = int(declared) if declared.isdigit() else 0
    if size > limit:
        raise BodyTooLarge(f"The body has {size} bytes; the limit is {limit}.", body_bytes=size, limit_bytes=limit)
    if size > LARGE_BYTES:
        await held.body(size)
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        body += message.get("body", b"")
        if len(body) > limit:
            raise BodyTooLarge(f"The body has more than {limit} bytes.", limit_bytes=limit)
        if len(body) > LARGE_BYTES >= size:
            # In pieces, of unknown length: it may become as large as bodies may be.
            size = limit
            await held.body(size)
        if not message.get("more_body", False):
            return body


def _replay(body: Body, receive: Receive) -> Receive:
    waiting: list[Body] = [body]

    async def replay() -> Message:
        if not waiting:
            return await receive()
        return {"type": "http.request", "body": waiting.pop(), "more_body": False}

    return replay
