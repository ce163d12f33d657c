"""How turns end: every kind of answer that a model can give."""

from dataclasses import replace

import pytest

from app.agent.loop import run_loop
from app.agent.turn import Limits
from app.context.rules import violation
from app.context.view import render_view
from app.conversation.events import EventType
from app.conversation.messages import text_block, tool_results, tool_uses
from app.conversation.reply import BlockOpened, Delta, Reply, UsageSeen
from app.conversation.run import CallState
from app.conversation.usage import Purpose, Usage
from app.errors import ProviderFailure, RunFailed
from app.providers.scripted import USAGE, call, calls, say, use
from tests.twins import Works, echo

SEEN = Usage(input=100, calls=1)


def cut(*positions: int, stop_reason: str = "max_tokens") -> Reply:
    blocks = (text_block("I write"), use("echo", {}), use("echo", {}))
    return Reply(blocks, stop_reason, USAGE, dict.fromkeys(positions, "cut off"))


def failure(transient: bool = True, code: str = "provider_error") -> ProviderFailure:
    return ProviderFailure(code, "It broke.", transient=transient)


def breaks(*pieces: str, error: ProviderFailure) -> list:
    return [UsageSeen(SEEN), BlockOpened(0, {"type": "text"}), *(Delta(0, "text", piece) for piece in pieces), error]


async def results_of(works: Works, turn) -> list:
    return [block for row in await works.rows(turn.session) for block in tool_results(row.content)]


async def kinds(works: Works, turn) -> list:
    return [event.type for event in await works.log(turn.session)]


async def test_an_answer_without_calls_ends_the_turn():
    works = Works(say("hello"))
    turn = await works.begin()
    assert await run_loop(turn) == "end_turn"
    assert [row.role for row in turn.log.rows] == ["user", "assistant"]
    assert turn.log.usage == {Purpose.MAIN: USAGE}


async def test_calls_run_and_their_results_go_back_in_call_order():
    works = Works(calls(use("echo", {"n": 1}, "b"), use("echo", {"n": 2}, "a")), say("done"), tools=[echo()])
    turn = await works.begin()
    assert await run_loop(turn) == "end_turn"
    results = works.provider.requests[1].messages[-1].content
    assert [(block["tool_use_id"], block["content"]) for block in results] == [("b", "echo of b"), ("a", "echo of a")]
    assert turn.log.rows == await works.rows(turn.session)


@pytest.mark.parametrize("reason", ["stop_sequence", "some_new_reason", "max_tokens"])
async def test_other_stop_reasons_are_passed_on(reason):
    works = Works(say("so far", reason))
    assert await run_loop(await works.begin()) == reason


@pytest.mark.parametrize("reason", ["tool_use", "pause_turn", "max_tokens", "end_turn"])
async def test_an_answer_with_nothing_in_it_does_not_spin(reason):
    works = Works(Reply((), reason, USAGE, {}), say("went on"))
    assert await run_loop(await works.begin()) == ("end_turn" if reason == "pause_turn" else reason)


async def test_a_paused_answer_is_sent_again_and_continued():
    works = Works(say("half", "pause_turn"), say("whole"))
    turn = await works.begin()
    assert await run_loop(turn) == "end_turn"
    request = works.provider.requests[1]
    assert request.continues
    assert request.messages[-1].role == "assistant"
    assert [row.role for row in turn.log.rows] == ["user", "assistant", "assistant"]


async def test_a_refusal_fails_the_run_and_no_empty_message_is_ever_sent():
    works = Works(Reply((), "refusal", USAGE, {}), say("fine"))
    turn = await works.begin()
    with pytest.raises(RunFailed) as refused:
        await run_loop(turn)
    assert refused.value.code == "refusal"
    assert all(message.content for message in render_view([*turn.log.rows, turn.log.rows[0]]))


@pytest.mark.parametrize("positions", [(1, 2), (2,), ()], ids=["both broken", "one broken", "both whole"])
async def test_calls_of_an_answer_that_was_cut_off_never_run_and_are_answered_with_it(positions):
    tool = echo()
    works = Works(cut(*positions), say("I see"), tools=[tool])
    turn = await works.begin()
    await run_loop(turn)
    assert tool.requests == []
    stored = next(step for step in works.runs.steps if step.calls)
    assert [row.state for row in stored.calls] == [CallState.DONE] * 2
    assert [block["is_error"] for block in await results_of(works, turn)] == [True, True]
    assert EventType.TOOL_STARTED not in await kinds(works, turn)


async def test_a_broken_call_is_answered_and_the_others_run():
    tool = echo()
    works = Works(cut(1, stop_reason="tool_use"), say("ok"), tools=[tool])
    turn = await works.begin()
    await run_loop(turn)
    assert len(tool.requests) == 1
    assert [block.get("is_error", False) for block in await results_of(works, turn)] == [True, False]


async def test_a_model_that_is_cut_again_and_again_is_asked_twice_more():
    works = Works(*[cut(1) for _ in range(4)], tools=[echo()])
    turn = await works.begin()
    assert await run_loop(turn) == "max_tokens"
    assert len(works.provider.requests) == 3
    assert len(await results_of(works, turn)) == 6


async def test_a_call_that_ran_between_two_cut_ones_forgives_the_first():
    works = Works(cut(1), cut(1), call("echo", {}), cut(1), cut(1), say("done"), tools=[echo()])
    assert await run_loop(await works.begin()) == "end_turn"


async def test_calls_beside_another_stop_reason_are_answered_and_the_turn_ends():
    tool = echo()
    works = Works(cut(stop_reason="end_turn"), tools=[tool])
    turn = await works.begin()
    assert await run_loop(turn) == "end_turn"
    assert tool.requests == []
    assert violation(render_view([*turn.log.rows, turn.log.rows[0]])) is None


async def test_a_turn_makes_at_most_so_many_model_calls():
    works = Works(*[call("echo", {}) for _ in range(5)], tools=[echo()], limits=Limits(5, 3, 8))
    turn = await works.begin()
    with pytest.raises(RunFailed) as failed:
        await run_loop(turn)
    assert (failed.value.code, failed.value.extra) == ("max_model_calls", {"limit": 3})
    assert len(works.provider.requests) == 3


@pytest.mark.parametrize("broken", ["", "../../x", "a b", "x" * 65], ids=["empty", "path", "blank", "long"])
async def test_ids_that_the_provider_would_refuse_are_replaced_in_call_and_result(broken):
    works = Works(call("echo", {}, broken), say("done"), tools=[echo()])
    turn = await works.begin()
    await run_loop(turn)
    [used] = tool_uses(turn.log.rows[1].content)
    [result] = tool_results(turn.log.rows[2].content)
    assert used["id"] == result["tool_use_id"] != broken
    assert violation(works.provider.requests[1].messages) is None


async def test_an_id_used_before_in_the_session_or_the_answer_is_replaced():
    works = Works(call("echo", {}, "a"), calls(use("echo", {}, "a"), use("echo", {}, "b"), use("echo", {}, "b")),
                  say("done"), tools=[echo()])  # fmt: skip
    turn = await works.begin()
    await run_loop(turn)
    ids = [block["id"] for row in turn.log.rows for block in tool_uses(row.content)]
    assert (ids[0], ids[2]) == ("a", "b")
    assert len(set(ids)) == 4
    assert ids == [block["tool_use_id"] for block in await results_of(works, turn)]


async def test_a_failure_after_output_is_taken_back_and_repeated():
    works = Works(breaks("wrong ", "words", error=failure()), say("right words"))
    turn = await works.begin()
    assert await run_loop(turn) == "end_turn"
    discarded, answered = (await works.log(turn.session))[-2:]
    assert (discarded.type, answered.type) == (EventType.MESSAGE_DISCARDED, EventType.MESSAGE_ASSISTANT)
    assert discarded.data["message_id"] != answered.data["message"]["id"]
    assert discarded.data["reason"] == "provider_error"
    assert turn.log.usage == {Purpose.MAIN: SEEN + USAGE}


async def test_after_two_repeats_the_failure_ends_the_run():
    works = Works(*[breaks("x", error=failure(code="provider_overloaded"))] * 3, say("never"))
    turn = await works.begin()
    with pytest.raises(ProviderFailure) as failed:
        await run_loop(turn)
    assert failed.value.code == "provider_overloaded"
    assert (await kinds(works, turn)).count(EventType.MESSAGE_DISCARDED) == 3
    assert turn.log.usage == {Purpose.MAIN: SEEN + SEEN + SEEN}
    assert turn.log.shown is None


@pytest.mark.parametrize("pieces", [(), ("shown",)], ids=["before output", "after output"])
async def test_a_final_failure_is_not_repeated(pieces):
    works = Works(breaks(*pieces, error=failure(transient=False)), say("never"))
    turn = await works.begin()
    with pytest.raises(ProviderFailure):
        await run_loop(turn)
    assert len(works.provider.requests) == 1
    assert (await kinds(works, turn)).count(EventType.MESSAGE_DISCARDED) == len(pieces)
    assert [row.role for row in turn.log.rows] == ["user"]


async def test_usage_of_attempts_that_failed_unseen_counts_once():
    works = Works([UsageSeen(SEEN), UsageSeen(SEEN), UsageSeen(SEEN), say("at last")])
    turn = await works.begin()
    await run_loop(turn)
    assert turn.log.usage == {Purpose.MAIN: SEEN + SEEN + USAGE}
    assert turn.log.rows[-1].usage == USAGE


async def test_a_window_that_is_full_again_and_again_takes_each_text_back_and_fails():
    works = Works(*[say("as far as", "model_context_window_exceeded")] * 3)
    turn = await works.begin()
    with pytest.raises(RunFailed) as failed:
        await run_loop(turn)
    assert failed.value.code == "context_overflow"
    assert (await kinds(works, turn))[-1] is EventType.MESSAGE_DISCARDED
    assert (await kinds(works, turn)).count(EventType.MESSAGE_DISCARDED) == 3
    assert turn.log.usage == {Purpose.MAIN: USAGE + USAGE + USAGE}


async def test_a_run_goes_on_where_its_rows_stand():
    works = Works(cut(1), cut(1), cut(1), say("never"), tools=[echo()])
    turn = await works.begin()
    with pytest.raises(RunFailed):
        await run_loop(limited(turn, 2))
    assert await run_loop(turn) == "max_tokens"
    assert len(works.provider.requests) == 3


def limited(turn, model_calls: int):
    return replace(turn, bench=replace(turn.bench, limits=Limits(5, model_calls, 8)))


async def test_the_calls_of_earlier_owners_count_against_the_limit():
    works = Works(*[call("echo", {}) for _ in range(5)], tools=[echo()])
    turn = await works.begin()
    for _ in range(2):
        with pytest.raises(RunFailed):
            await run_loop(limited(turn, 2))
    assert len(works.provider.requests) == 2


async def test_a_finished_answer_is_not_asked_for_again():
    works = Works(say("done"))
    turn = await works.begin()
    assert [await run_loop(turn) for _ in range(2)] == ["end_turn", "end_turn"]
    assert len(works.provider.requests) == 1
