"""One tenant's large bodies and answers take no more than their share of the server's memory."""

import asyncio
import json

import pytest

from app.apart import LARGE_BYTES
from app.api import share
from app.api.share import Held, Sender, Share, Shares, weight
from app.errors import TooMuchAtOnce

LARGE = LARGE_BYTES + 1


async def test_bodies_wait_in_line_for_those_before_them():
    bodies, order = Share(10), []

    async def use(name: str, size: int) -> None:
        held = Held(Shares(bodies))
        await held.body(size)
        order.append(name)
        held.end()

    first = Held(Shares(bodies))
    await first.body(6)
    waiting = [asyncio.create_task(use(*one)) for one in (("large", 8), ("small", 2), ("over the limit", 11))]
    await asyncio.sleep(0)
    assert order == []
    first.end_body()
    await asyncio.gather(*waiting)
    assert order == ["large", "small", "over the limit"]


async def test_who_would_wait_for_too_long_is_told_when_to_ask_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(share, "PATIENCE_S", 0)
    bodies = Share(10)
    first, second = Held(Shares(bodies)), Held(Shares(bodies))
    await first.body(6)
    with pytest.raises(TooMuchAtOnce) as refused:
        await second.body(6)
    assert (refused.value.status, refused.value.retry_after_s) == (429, 1)
    second.end()
    first.end()
    monkeypatch.undo()
    await second.body(10)


async def test_work_waits_for_work_and_not_for_bodies_that_are_read():
    shares = Shares(Share(10), Share(10))
    first, second, third = [Held(shares) for _ in range(3)]
    await first.body(5)
    await second.body(5)
    await first.work(11)
    waiting = [asyncio.create_task(second.work(10)), asyncio.create_task(third.body(10))]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    first.end()
    await waiting[0]
    second.end_body()
    await waiting[1]


@pytest.mark.parametrize(
    ("body", "least"), [(b"x" * 9, 9), ("é".encode() * 9, 72), (b"[" + b"{}," * 9 + b"{}]", 9 * 64)]
)
def test_many_values_and_wide_characters_weigh_more_than_their_bytes(body: bytes, least: int):
    assert least <= weight(bytearray(body)) <= least + len(body)


class Client:
    """What it has been sent."""

    def __init__(self, answers: Share) -> None:
        self.sent: list[dict] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.held = Held(Shares(answers=answers))
        self.state = {"large": True, "body": 1, "checked": 2, "held": self.held}
        self.cut = False
        scope = {"type": "http", "state": self.state, "extensions": {"hango.cut": {"now": self._cut}}}
        self._sender = Sender(scope, self._receive, self._send)

    async def ask(self, *bodies: bytes) -> None:
        await self._sender({"type": "http.response.start", "status": 200, "headers": []})
        for number, body in enumerate(bodies, 1):
            await self._sender({"type": "http.response.body", "body": body, "more_body": number < len(bodies)})

    @property
    def answer(self) -> tuple[int, bytes]:
        start, *pieces = self.sent
        assert [piece["more_body"] for piece in pieces] == [True] * (len(pieces) - 1) + [False]
        return start["status"], b"".join(piece["body"] for piece in pieces)

    async def _receive(self) -> dict:
        return {"type": "http.disconnect"}

    def _cut(self) -> None:
        self.cut = True

    async def _send(self, message: dict) -> None:
        await self.reads.wait()
        self.sent.append({"more_body": False, **message})


@pytest.mark.parametrize("size", [0, 1, LARGE_BYTES, LARGE, 3 * LARGE_BYTES])
async def test_an_answer_goes_out_whole_in_pieces(size: int):
    client = Client(Share(0))
    await client.ask(bytes(size))
    assert client.answer == (200, bytes(size))
    assert max(len(message.get("body", b"")) for message in client.sent) <= LARGE_BYTES
    assert client.state == {"large": True, "held": client.held}


async def test_a_stream_keeps_its_order():
    client = Client(Share(0))
    await client.ask(b"a", b"b" * LARGE, b"", b"c")
    assert client.answer == (200, b"a" + b"b" * LARGE + b"c")


async def test_a_large_answer_is_refused_while_others_wait_to_be_read_and_a_small_one_is_not():
    answers = Share(2 * LARGE)
    slow, other, late, small = [Client(answers) for _ in range(4)]
    slow.reads.clear()
    other.reads.clear()
    waiting = [asyncio.create_task(client.ask(bytes(LARGE))) for client in (slow, other)]
    await asyncio.sleep(0)
    await small.ask(b"ok")
    await late.ask(bytes(LARGE))
    status, document = late.answer
    assert (small.answer[0], status, json.loads(document)["code"]) == (200, 429, "too_much_at_once")
    slow.reads.set()
    other.reads.set()
    await asyncio.gather(*waiting)
    again = Client(answers)
    await again.ask(bytes(LARGE))
    assert [client.answer for client in (slow, other, again)] == [(200, bytes(LARGE))] * 3


async def test_a_stream_is_cut_where_its_next_part_finds_no_room():
    answers = Share(LARGE)
    slow, stream = Client(answers), Client(answers)
    slow.reads.clear()
    waiting = asyncio.create_task(slow.ask(bytes(LARGE)))
    await asyncio.sleep(0)
    await stream.ask(b"a", bytes(LARGE), b"c")
    assert stream.cut
    assert [message.get("body") for message in stream.sent] == [None, b"a"]
    slow.reads.set()
    await waiting
