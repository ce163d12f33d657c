"""What a run commits and shows: whole steps, one at a time, and no preview behind its message's end."""

import asyncio

import pytest

from app.conversation.events import EventType, NewEvent, Preview
from app.conversation.messages import text_block
from app.conversation.reply import Delta
from app.conversation.run import NewMessage, NewRun, Step
from app.errors import LeaseLost
from app.turns.broadcast import Broadcast
from app.turns.journal import Journal
from app.turns.shielded import finish
from app.turns.writing import Writer
from tests.twins import Works, posted


class Desk:
    """A journal with one reader."""

    def __init__(self) -> None:
        self.works = Works()
        self.broadcast = Broadcast()
        self._seen: list = []

    async def open(self) -> Journal:
        session = await self.works.open()
        await self.works.runs.accept(NewRun("run_1", session.id, posted(), "m"), False, None)
        taken = await self.works.runs.start(session.id, "one", self.works.starts)
        assert taken is not None
        self._reader = self.broadcast.subscribe(session.id, asyncio.Future())
        self._subscription = self._reader.__enter__()
        writer = Writer(taken, self.works.runs, self.works.clock)
        return Journal(taken, await self.works.rows(session), (), writer, self.broadcast)

    async def read(self) -> list:
        """All that the reader was given so far."""
        while (item := await self._subscription.get(0)) is not None:
            self._seen.append(item)
        return self._seen

    async def texts(self) -> list[str]:
        return [item.data["text"] for item in await self.read() if isinstance(item, Preview)]


def answer(message_id: str = "msg_a", text: str = "hello") -> Step:
    return Step(
        messages=(NewMessage(message_id, "assistant", (text_block(text),), "end_turn"),),
        events=(NewEvent(EventType.MESSAGE_ASSISTANT, message=0),),
    )


def taken_back(message_id: str) -> Step:
    return Step(events=(NewEvent(EventType.MESSAGE_DISCARDED, {"message_id": message_id, "reason": "x"}),))


def show(journal: Journal, *texts: str, message_id: str = "msg_a") -> None:
    journal.open_message(message_id)
    journal.open_block(0, {"type": "text"})
    for text in texts:
        journal.delta(Delta(0, "text", text))


async def test_the_first_piece_leaves_at_once_and_the_others_together():
    desk = Desk()
    journal = await desk.open()
    show(journal, "a", "b", "c")
    assert await desk.texts() == ["a"]
    await journal.write(answer())
    assert await desk.texts() == ["a", "bc"]
    *_, preview, event = await desk.read()
    assert isinstance(preview, Preview)
    assert event.type is EventType.MESSAGE_ASSISTANT


@pytest.mark.parametrize("ending", [answer("msg_a"), taken_back("msg_a")], ids=["stored", "discarded"])
async def test_a_message_that_has_ended_shows_nothing_more(ending):
    desk = Desk()
    journal = await desk.open()
    show(journal, "a", "b")
    await journal.write(ending)
    shown = len(await desk.read())
    journal.delta(Delta(0, "text", "late"))
    journal.open_block(1, {"type": "text"})
    assert journal.shown is None
    assert len(await desk.read()) == shown
    show(journal, "next", message_id="msg_b")
    assert (journal.shown, (await desk.texts())[-1]) == ("msg_b", "next")


async def test_a_sealed_journal_has_no_timer_no_snapshot_and_no_writer():
    desk = Desk()
    journal = await desk.open()
    show(journal, "a", "b")
    journal.seal()
    assert await desk.texts() == ["a", "b"]
    assert journal._flusher is None
    with desk.broadcast.subscribe("ses_1", asyncio.Future()) as subscription:
        assert subscription.snapshot is None
    with pytest.raises(LeaseLost):
        await journal.write(answer())
    with pytest.raises(LeaseLost):
        journal.open_message("msg_b")
    assert len(journal.rows) == 1


async def test_steps_are_committed_and_told_one_after_the_other():
    desk = Desk()
    journal = await desk.open()
    waits = iter((5, 1, 3, 0))

    async def wait(step: Step) -> None:
        for _ in range(next(waits)):
            await asyncio.sleep(0)

    desk.works.runs.before = wait
    await asyncio.gather(*(journal.write(answer(f"msg_{name}")) for name in "abcd"))
    assert [row.id for row in journal.rows[1:]] == ["msg_a", "msg_b", "msg_c", "msg_d"]
    assert [event.seq for event in await desk.read()] == [4, 5, 6, 7]


async def test_the_last_step_sees_every_step_before_it_and_none_comes_after():
    desk = Desk()
    journal = await desk.open()
    go_on = asyncio.Event()

    async def hold(step: Step) -> None:
        await go_on.wait()

    desk.works.runs.before = hold
    seen: list[int] = []

    def last() -> Step:
        seen.append(len(journal.rows))
        return answer("msg_last")

    async def late() -> None:
        await journal.write(answer("msg_late"))

    writing = asyncio.create_task(journal.write(answer("msg_a")))
    await asyncio.sleep(0)
    closing = asyncio.create_task(journal.close(last))
    await asyncio.sleep(0)
    behind = asyncio.create_task(late())
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(writing, closing)
    with pytest.raises(LeaseLost):
        await behind
    assert seen == [2]
    assert [row.id for row in journal.rows[1:]] == ["msg_a", "msg_last"]


async def test_a_step_that_failed_changes_nothing():
    desk = Desk()
    journal = await desk.open()

    async def fail(step: Step) -> None:
        raise ZeroDivisionError

    desk.works.runs.before = fail
    with pytest.raises(ZeroDivisionError):
        await journal.write(answer())
    assert (len(journal.rows), await desk.read()) == (1, [])


async def test_work_is_finished_however_often_its_caller_is_cancelled():
    go_on, done = asyncio.Event(), []

    async def work() -> str:
        await go_on.wait()
        done.append("done")
        return "result"

    task = asyncio.create_task(finish(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["done"]
    assert await finish(work()) == "result"
