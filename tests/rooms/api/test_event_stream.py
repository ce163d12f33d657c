"""One stream over a broadcast and a log in memory: pings, endings, faults of the store."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from app.api.sse import EventStream, frame
from app.conversation.events import EndReason, EventType, Preview, PreviewType, StoredEvent
from app.errors import StoreUnavailable
from app.ports import Stretch
from app.turns.broadcast import Broadcast
from app.turns.follow import Follower

AT = datetime(2026, 1, 1, tzinfo=UTC)
NEVER_S = 3600.0


def event(seq: int, kind: EventType = EventType.TURN_STARTED, run_id: str = "run_a") -> StoredEvent:
    return StoredEvent(seq, kind, "ses_1", run_id, AT, {})


def delta(run_id: str, text: str = "x") -> Preview:
    return Preview(PreviewType.TEXT_DELTA, "ses_1", run_id, {"message_id": "msg_1", "index": 0, "text": text})


class Log:
    """An event log in memory; `down` makes it unavailable."""

    def __init__(self, *events: StoredEvent) -> None:
        self.events = list(events)
        self.down = False

    async def after(self, session_id: str, seq: int, limit: int, run_id: str | None = None) -> Stretch[StoredEvent]:
        if self.down:
            raise StoreUnavailable("gone")
        found = [event for event in self.events if event.seq > seq and run_id in (None, event.run_id)]
        return Stretch(found[:limit], limit < len(found))

    async def heads(self, session_ids: Sequence[str]) -> dict[str, int]:
        return {}

    async def oldest(self, session_id: str) -> int:
        return 1


class Client:
    """The ASGI side of a client: what it got; it leaves when told to; it may stop reading."""

    def __init__(self) -> None:
        self.body = b""
        self.ended = False
        self.status = 0
        self.got = asyncio.Condition()
        self.left = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()

    async def receive(self) -> dict:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict) -> None:
        await self.reads.wait()
        async with self.got:
            self.status = message.get("status", self.status)
            self.body += message.get("body", b"")
            self.ended = self.ended or not message.get("more_body", True)
            self.got.notify_all()

    async def has(self, count: int) -> None:
        """Waits for so many frames."""
        async with self.got:
            await self.got.wait_for(lambda: self.body.count(b"\n\n") >= count)

    @property
    def frames(self) -> list[str]:
        return [part.partition("\n")[0] for part in self.body.decode().split("\n\n")[:-1]]


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def broadcast() -> Broadcast:
    return Broadcast()


def opened(client: Client, follower: Follower, ping_s: float = NEVER_S) -> asyncio.Task[None]:
    scope = {"type": "http", "extensions": {"hango.cut": {"now": client.left.set}}}
    return asyncio.create_task(EventStream(follower, ping_s)(scope, client.receive, client.send))


async def test_a_stream_ends_after_the_last_event_of_its_run(client: Client, broadcast: Broadcast):
    log = Log(event(1), event(2, EventType.TURN_COMPLETED))
    await opened(client, Follower(log, broadcast, "ses_1", 0, "run_a", until="run_a"))
    assert client.frames == [": ping", "id: 1", "id: 2"]
    assert b"stream.ended" not in client.body
    assert client.ended


async def test_it_ends_when_the_client_leaves(client: Client, broadcast: Broadcast):
    stream = opened(client, Follower(Log(event(1)), broadcast, "ses_1", 0, None, None))
    await client.has(2)
    client.left.set()
    await stream
    assert not client.ended
    assert broadcast.sessions == []


async def test_a_server_that_drains_ends_its_streams_and_later_ones_with_a_hint(client: Client, broadcast: Broadcast):
    stream = opened(client, Follower(Log(event(1)), broadcast, "ses_1", 0, None, None))
    await client.has(2)
    broadcast.drain(lambda _: False)
    await stream
    late = Client()
    await opened(late, Follower(Log(event(1)), broadcast, "ses_1", 0, None, None))
    data = b'{"type":"stream.ended","session_id":"ses_1","data":{"reason":"draining"}}'
    for reader in (client, late):
        assert reader.frames == [": ping", "id: 1", "retry: 1000"]
        assert reader.body.endswith(b"retry: 1000\nevent: stream.ended\ndata: " + data + b"\n\n")
        assert reader.ended


async def test_a_drain_cuts_a_reader_that_does_not_read(
    client: Client, broadcast: Broadcast, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("app.turns.broadcast.END_S", 0.01)
    monkeypatch.setattr("app.api.sse.END_S", 0.01)
    stream = opened(client, Follower(Log(event(1)), broadcast, "ses_1", 0, None, None))
    await client.has(2)
    client.reads.clear()
    broadcast.publish(event(2))
    broadcast.drain(lambda _: False)
    await stream
    assert not client.ended


async def test_the_stream_of_a_deleted_session_gives_no_hint_to_come_back(client: Client, broadcast: Broadcast):
    stream = opened(client, Follower(Log(), broadcast, "ses_1", 0, None, None))
    await client.has(1)
    broadcast.end("ses_1", EndReason.DELETED)
    await stream
    assert client.frames == [": ping", "event: stream.ended"]
    assert b'"reason":"deleted"' in client.body


async def test_a_reader_that_never_reads_is_cut_off(client: Client, broadcast: Broadcast):
    follower = Follower(Log(event(1)), broadcast, "ses_1", 0, None, None)
    stream = opened(client, follower)
    await client.has(2)
    client.reads.clear()
    published = 0
    while not follower.cut.done():
        broadcast.preview(delta("run_a"))
        published += 1
    await stream
    assert published <= 1002
    assert client.left.is_set()
    assert not client.ended
    assert broadcast.sessions == []


async def test_a_silent_stream_is_pinged(client: Client, broadcast: Broadcast):
    stream = opened(client, Follower(Log(), broadcast, "ses_1", 0, None, None), ping_s=0.001)
    await client.has(4)
    client.left.set()
    await stream
    assert set(client.frames) == {": ping"}


async def test_events_that_are_left_out_do_not_keep_a_stream_silent(client: Client, broadcast: Broadcast):
    follower = Follower(Log(), broadcast, "ses_1", 0, "run_b", None)
    items = follower.items(0.0)
    assert await anext(items) is None
    for _ in range(3):
        broadcast.preview(delta("run_a"))
    broadcast.preview(delta("run_b"))
    assert [await anext(items) for _ in range(4)] == [None, None, None, delta("run_b")]
    await items.aclose()


async def test_a_store_that_goes_away_ends_the_stream_quietly(
    client: Client, broadcast: Broadcast, caplog: pytest.LogCaptureFixture
):
    log = Log(event(1))
    stream = opened(client, Follower(log, broadcast, "ses_1", 0, None, None))
    await client.has(2)
    log.down = True
    broadcast.nudge("ses_1", 5)
    await stream
    assert client.body.endswith(b'"reason":"store_unavailable"}}\n\n')
    assert client.ended
    assert [record.getMessage() for record in caplog.records] == ["event stream ended: gone"]


async def test_a_fault_of_ours_is_raised_and_the_stream_is_not_ended_as_if_whole(client: Client, broadcast: Broadcast):
    broken = Log(event(1))
    broken.after = None  # type: ignore[method-assign,assignment]
    with pytest.raises(TypeError):
        await opened(client, Follower(broken, broadcast, "ses_1", 0, None, None))
    assert not client.ended


def test_a_frame_is_one_line_of_data_whatever_is_in_it():
    preview = delta("run_a", "a\nb\r\nc\u2028d\u2029e\x85f\x00\ufffd\U0001f600")
    lines = frame(preview).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["event", "data", ""]
    assert "\U0001f600" in lines[1]
