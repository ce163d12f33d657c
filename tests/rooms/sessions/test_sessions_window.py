"""What is shown of a session's window, from stored rows and records."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.context.epoch_json import to_json
from app.context.ledger import private_state, with_epoch
from app.conversation.messages import StoredMessage
from app.conversation.records import Anchor, Cause, Cut, Epoch, Ledger, Memo, Reason, Shaping, Tier
from app.conversation.run import Closing, NewRun, RunInput, RunStatus, Step
from app.errors import NotFound
from app.reading import borne_out
from app.sessions.opening import Opening
from app.sessions.service import MOST_VIEWS
from app.storage.memory.runs import MemoryRuns
from app.storage.memory.transcript import MemoryTranscript

MODEL = "claude-sonnet-4-6"
ANSWER = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "/workspace/a"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x" * 500}
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "read a"},
    {"role": "assistant", "content": [ANSWER]},
    {"role": "user", "content": [RESULT]},
    {"role": "assistant", "content": "done"},
    {"role": "user", "content": "and b?"},
    {"role": "assistant", "content": "no"},
]
ELISION = Shaping("rec_1", Tier.MICRO_COMPACTION, 1, 120, spans=((3, 3),))
SUMMARY = Cut(
    "rec_2", Tier.SUMMARIZATION, 1, Reason.THRESHOLD, "run_1", 1, 5, (1,), 4, "They read a.", path="/x.md", evicted=4
)


async def opened(sessions, state, *epochs: Epoch, memo: Memo | None = None, messages=TALK) -> str:
    """A session of which one run has stored these epochs."""
    session, _, _ = await sessions.open(Opening("acme", MODEL, messages=messages))
    ledger, private = Ledger(memo=memo or Memo()), None
    for epoch in epochs:
        ledger = with_epoch(ledger, epoch, "run_1")
        private = private_state(ledger, "run_1", private, epoch)
    runs = MemoryRuns(state, 15)
    await runs.accept(NewRun("run_1", session.id, RunInput(()), MODEL, "compact"), False, None)
    taken = await runs.start(session.id, "one", lambda _: Step())
    await runs.write(taken.lease, Step(state={"private": private}, closing=Closing(RunStatus.COMPLETED)))
    return session.id


@pytest.mark.parametrize("ask", ["context", "view", "records"])
async def test_another_tenants_window_is_not_found(sessions, state, ask):
    with pytest.raises(NotFound):
        await getattr(sessions, ask)("rival", await opened(sessions, state, Epoch("e1", Cause.THRESHOLD, (ELISION,))))


async def test_records_come_newest_first_and_retired_ones_not_at_all(sessions, state):
    later = Shaping("rec_3", Tier.MICRO_COMPACTION, 1, 120, spans=((6, 7),))
    one = await opened(sessions, state, Epoch("e1", Cause.THRESHOLD, (ELISION,)))
    assert await sessions.records("acme", one) == [ELISION]
    two = await opened(
        sessions,
        state,
        Epoch("e1", Cause.THRESHOLD, (ELISION,)),
        Epoch("e2", Cause.THRESHOLD, (SUMMARY,)),
        Epoch("e3", Cause.MICRO, (later,)),
    )
    assert await sessions.records("acme", two) == [SUMMARY, later]


async def test_each_message_of_the_view_names_its_rows_and_each_shaped_block_its_record(sessions, state):
    view = await sessions.view("acme", await opened(sessions, state, Epoch("e1", Cause.THRESHOLD, (ELISION,))))
    assert [source.seqs for source in view.sources] == [(1,), (2,), (3,), (4,), (5,), (6,)]
    assert [source.shaped for source in view.sources if source.shaped] == [((0, ("rec_1",)),)]
    assert "/tool_results/000002-00.txt" in view.messages[2].content[0]["content"]


async def test_the_head_names_the_summary_and_carries_a_breakpoint(sessions, state):
    view = await sessions.view("acme", await opened(sessions, state, Epoch("e1", Cause.THRESHOLD, (SUMMARY,))))
    assert [source.seqs for source in view.sources] == [(), (1, 5), (6,)]
    assert view.sources[0].shaped == ((0, ("rec_2",)),)
    assert [(point.message, point.block) for point in view.breakpoints] == [(None, 0), (0, 0), (1, 1), (2, 0)]


async def test_an_answer_of_thinking_alone_at_the_end_is_not_shown(sessions, state):
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    messages = [*TALK[:-1], {"role": "assistant", "content": [thinking]}]
    view = await sessions.view("acme", await opened(sessions, state, messages=messages))
    assert [message.role for message in view.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert len(view.sources) == 5


async def test_a_record_that_does_not_parse_is_left_out_and_the_rest_is_shown(sessions, state):
    session_id = await opened(sessions, state, Epoch("e1", Cause.THRESHOLD, (SUMMARY,)))
    (room,) = state.rooms.values()
    room.runs["run_1"].state["private"]["epochs"][0]["records"][0]["kept_from_seq"] = "five"
    view = await sessions.view("acme", session_id)
    assert len(view.messages) == len(TALK)
    assert await sessions.records("acme", session_id) == []
    assert to_json(Epoch("e1", Cause.THRESHOLD, (SUMMARY,)))["records"][0]["kept_from_seq"] == 5


async def test_a_truncation_of_another_release_falls_back_to_the_summary_before_it(sessions, state):
    later = replace(SUMMARY, id="rec_3", summary="", shape=99, kept_from_seq=6, pinned_seqs=(5,))
    epochs = Epoch("e1", Cause.THRESHOLD, (SUMMARY,)), Epoch("e2", Cause.OVERFLOW, (later,))
    session_id = await opened(sessions, state, *epochs)
    assert await sessions.records("acme", session_id) == [SUMMARY]
    assert [source.seqs for source in (await sessions.view("acme", session_id)).sources] == [(), (1, 5), (6,)]
    of_a_fork, rows, _ = await borne_out(sessions.transcript, session_id, Ledger(summary=SUMMARY, cut=later), 5)
    assert (of_a_fork.cut, [row.seq for row in rows]) == (SUMMARY, [1, 5])


async def test_what_was_measured_with_a_record_that_is_left_out_does_not_hold(sessions, state):
    epoch = Epoch("e1", Cause.THRESHOLD, (replace(ELISION, shape=99),))
    session_id = await opened(sessions, state, epoch, memo=Memo(anchor=Anchor(90_000, 6, 100)))
    assert (await sessions.context("acme", session_id)).estimated_input_tokens < 1_000


async def test_the_estimate_stands_on_the_last_real_count(sessions, state):
    epoch = Epoch("e1", Cause.FIRST)
    session_id = await opened(sessions, state, epoch, memo=Memo(anchor=Anchor(90_000, 6, 100)))
    gauge = await sessions.context("acme", session_id)
    assert gauge.estimated_input_tokens == 90_000
    assert sum(gauge.breakdown.values()) == pytest.approx(90_000, abs=2)


async def test_after_an_epoch_the_summary_is_in_the_breakdown_and_what_left_is_not(sessions, state):
    before = await sessions.context("acme", await opened(sessions, state, Epoch("e1", Cause.FIRST)))
    after = await sessions.context("acme", await opened(sessions, state, Epoch("e1", Cause.THRESHOLD, (SUMMARY,))))
    assert before.breakdown["summary"] == 0 < after.breakdown["summary"]
    assert after.breakdown["messages"] < before.breakdown["messages"]
    assert (before.epochs, after.epochs) == (0, 1)


class Slow(MemoryTranscript):
    """Notes whose view is read, and reads it once it may."""

    def __init__(self, state) -> None:
        super().__init__(state)
        self.read: list[str] = []
        self.go_on = asyncio.Event()

    async def view_rows(self, session_id: str, from_seq: int, seqs: Sequence[int]) -> Sequence[StoredMessage]:
        self.read.append(session_id)
        await self.go_on.wait()
        return await super().view_rows(session_id, from_seq, seqs)


@pytest.mark.parametrize("ask", ["context", "view", "records", "listed_files"])
async def test_a_tenant_has_few_views_in_memory_and_keeps_no_other_tenant_waiting(sessions, state, ask):
    slow = Slow(state)
    sessions = replace(sessions, transcript=slow)
    full, other = [(await sessions.open(Opening(tenant, MODEL, messages=TALK)))[0] for tenant in ("full", "other")]
    asked = [full] * (MOST_VIEWS + 2) + [other]
    asking = [asyncio.create_task(getattr(sessions, ask)(session.tenant, session.id)) for session in asked]
    await asyncio.sleep(0)
    assert slow.read == [full.id] * MOST_VIEWS + [other.id]
    slow.go_on.set()
    await asyncio.gather(*asking)
    assert slow.read.count(full.id) == MOST_VIEWS + 2
