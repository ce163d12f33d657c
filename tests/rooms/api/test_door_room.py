"""The door as ASGI: what reaches the application behind it, and what never does."""

import json

import pytest

from app.api.door import Door
from app.conversation.api_key import ApiKey, digest_of


class Behind:
    """The application behind the door: keeps the scopes it was given and the body it read."""

    def __init__(self) -> None:
        self.scopes: list[dict] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope, receive, send) -> None:
        self.scopes.append(scope)
        self.bodies.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})


async def knock(door: Door, *messages: dict, **changes) -> list[dict]:
    """What the door sends for a request of these messages; reading beyond them is a mistake."""
    left, sent = list(messages), []
    scope = {"type": "http", "method": "POST", "path": "/v1/sessions", "headers": [(b"host", b"localhost")], **changes}

    async def receive():
        return left.pop(0)

    async def send(message):
        sent.append(message)

    await door(scope, receive, send)
    return sent


def piece(body: bytes, more: bool = False) -> dict:
    return {"type": "http.request", "body": body, "more_body": more}


@pytest.fixture
def behind() -> Behind:
    return Behind()


@pytest.fixture
def door(behind: Behind) -> Door:
    return Door(behind, (), 100)


@pytest.mark.parametrize("sent", [[], [b""], [b"{"], [b"{}"], [b"[1,", b"2]"]])
async def test_a_client_that_leaves_is_not_answered_and_reaches_nothing(door: Door, behind: Behind, sent: list[bytes]):
    assert await knock(door, *(piece(body, more=True) for body in sent), {"type": "http.disconnect"}) == []
    assert behind.scopes == []


async def test_a_body_in_pieces_arrives_whole_and_parsed(door: Door, behind: Behind):
    await knock(door, piece(b'{"a":', more=True), piece(b"", more=True), piece(b'"\\u0000"}'))
    assert behind.bodies == [b'{"a":"\\u0000"}']
    state = behind.scopes[0]["state"]
    state.pop("held").end()
    assert state == {"tenant": "local", "large": False, "body": {"a": "\ufffd"}}
    assert (b"content-type", b"application/json") in behind.scopes[0]["headers"]


async def test_a_body_is_given_up_as_soon_as_it_is_too_large(door: Door, behind: Behind):
    start, body = await knock(door, piece(b"x" * 60, more=True), piece(b"x" * 60, more=True))
    assert (start["status"], json.loads(body["body"])["limit_bytes"]) == (413, 100)
    assert behind.scopes == []


async def test_a_declared_length_is_enough_to_refuse(door: Door):
    start, body = await knock(door, headers=[(b"host", b"localhost"), (b"content-length", b"101")])
    assert (start["status"], json.loads(body["body"])["body_bytes"]) == (413, 101)


async def test_a_foreign_host_is_refused_before_its_body_is_read(door: Door, behind: Behind):
    start, _ = await knock(door, headers=[(b"host", b"example.com")])
    assert start["status"] == 403
    assert behind.scopes == []


async def test_a_loopback_name_may_be_fully_qualified(door: Door, behind: Behind):
    await knock(door, piece(b""), headers=[(b"host", b"LocalHost.:8000")])
    assert len(behind.scopes) == 1


async def test_head_reaches_the_application_as_a_get_that_wants_no_stream(door: Door, behind: Behind):
    headers = [(b"host", b"localhost"), (b"accept", b"text/event-stream")]
    await knock(door, piece(b""), method="HEAD", headers=headers)
    [scope] = behind.scopes
    assert scope["method"] == "GET"
    assert [value for name, value in scope["headers"] if name == b"accept"] == [b"application/json"]


async def test_what_is_not_http_passes(behind: Behind):
    async def lifespan(scope, receive, send) -> None:
        behind.scopes.append(scope)

    await knock(Door(lifespan, (), 100), type="lifespan")
    assert behind.scopes[0]["type"] == "lifespan"


async def test_keys_are_compared_whole_and_tell_the_tenant(behind: Behind):
    owners = {"one": "red", "two": "red", "three": "blue"}
    door = Door(behind, [ApiKey(tenant, digest_of(key)) for key, tenant in owners.items()], 100)
    for key in ("one", "two", "three"):
        await knock(door, piece(b""), headers=[(b"authorization", f"bearer {key}".encode())])
    assert [scope["state"]["tenant"] for scope in behind.scopes] == ["red", "red", "blue"]
    for key in ("", "on", "onee", "ONE", "one two"):
        start, _ = await knock(door, headers=[(b"authorization", f"Bearer {key}".encode())])
        assert start["status"] == 401
