"""What a run's owner writes in the transaction that takes the run."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.context.budget import Budget, make_budget
from app.conversation.events import EventType
from app.conversation.messages import StoredMessage, result_block, text_block
from app.conversation.model_profile import TABLE, resolve
from app.conversation.run import CallState, Run, RunInput, RunStatus, ToolCall
from app.conversation.session import Session, SessionSettings
from app.conversation.usage import Purpose, Usage, usage_to_json
from app.ports import Beginning
from app.tools.registry import Registry
from app.turns import plans
from app.turns.closing import CANCELLED
from tests.twins import CountedIds, echo

AT = datetime(2026, 1, 1, tzinfo=UTC)
TOOLS = Registry([echo("echo"), echo("look", safe=True)])
SESSION = Session("ses_1", "t", None, (), "m", SessionSettings(), "running", {}, 0, 0, AT, AT)
RUN = Run(
    "run_2", "ses_1", 2, "turn", RunStatus.RUNNING, RunInput((text_block("go"),)), "m", {}, {}, None, None, False, AT,
    None,
)  # fmt: skip
ASKED = tuple({"type": "tool_use", "id": f"t{n}", "name": name, "input": {}}
              for n, name in enumerate(("echo", "look", "echo", "gone")))  # fmt: skip


def row(seq: int, role, content, run_id: str = "run_2", usage: Usage | None = None) -> StoredMessage:
    return StoredMessage(f"msg_{seq}", seq, run_id, role, content, None, usage, True, True, AT)


TAIL = (row(1, "user", (text_block("hi"),)), row(2, "assistant", ASKED, usage=Usage(input=40, cache_read=2)))
EARLIER = tuple(replace(one, run_id="run_1") for one in TAIL)


def calls(*states: CallState) -> list[ToolCall]:
    done = {CallState.DONE: {"result": "kept"}}
    return [
        ToolCall(2, index, f"t{index}", ASKED[index]["name"], state, **done.get(state, {}))
        for index, state in enumerate(states)
    ]


OPEN = calls(CallState.STARTED, CallState.STARTED, CallState.PENDING, CallState.DONE)


def beginning(tail=TAIL, open_calls=(), deaths: int = 0, **run) -> Beginning:
    return Beginning(SESSION, replace(RUN, **run), tail, open_calls, deaths)


def budget_of(beginning: Beginning) -> Budget:
    return make_budget(resolve("claude-sonnet-4-6", TABLE), None, None)


def answers(step) -> dict:
    return {call.tool_use_id: (call.result, call.is_error) for call in step.changes if call.state is CallState.DONE}


def kinds(step) -> list:
    return [event.type for event in step.events]


def test_a_start_makes_the_posted_input_a_row():
    step = plans.start(beginning(tail=()), CountedIds(), budget_of)
    [message] = step.messages
    assert (message.role, message.content) == ("user", RUN.input.content)
    assert kinds(step) == [EventType.TURN_STARTED, EventType.MESSAGE_USER]
    assert step.events[0].data == {"turn": 2, "model": "m"}
    assert step.events[1].message == 0
    assert step.closing is None


def test_a_start_first_answers_what_an_earlier_turn_left_open():
    step = plans.start(beginning(EARLIER, OPEN), CountedIds(), budget_of)
    results, asked = step.messages
    assert [block["tool_use_id"] for block in results.content] == ["t0", "t1", "t2", "t3"]
    assert results.content[3] == result_block("t3", "kept", False)
    assert answers(step) == {
        "t0": (plans.UNKNOWN, True), "t1": (plans.UNKNOWN, True), "t2": (plans.NEVER_RAN, True),
    }  # fmt: skip
    assert asked.content == RUN.input.content
    assert step.events[-1].message == 1


def test_a_start_leaves_answered_calls_alone():
    results = row(3, "user", tuple(result_block(f"t{n}", "x", False) for n in range(4)), "run_1")
    step = plans.start(
        beginning(tail=(EARLIER[1], results), open_calls=calls(*[CallState.DONE] * 4)), CountedIds(), budget_of
    )
    assert len(step.messages) == 1
    assert step.changes == ()


def test_a_start_of_a_run_that_has_waited_goes_on_as_it_stands():
    step = plans.start(beginning(open_calls=calls(*[CallState.DONE] * 4)), CountedIds(), budget_of)
    assert (step.changes, step.events, step.messages, step.closing) == ((), (), (), None)


def test_a_run_that_was_cancelled_while_it_waited_ends_at_its_start_with_every_call_answered():
    waiting = calls(CallState.WAITING, CallState.ASKED, CallState.CLEARED, CallState.DONE)
    step = plans.start(beginning(open_calls=waiting, cancel_requested=True), CountedIds(), budget_of)
    [results] = step.messages
    assert [block["content"] for block in results.content] == [CANCELLED, CANCELLED, CANCELLED, "kept"]
    assert kinds(step) == [*[EventType.TOOL_COMPLETED] * 3, EventType.SESSION_USAGE, EventType.TURN_CANCELLED]
    assert step.closing is not None


@pytest.mark.parametrize("fields", [{"deaths": 1}, {"deaths": 2}, {"deaths": 1, "cancel_requested": True}])
def test_a_compaction_that_is_taken_over_leaves_the_calls_of_a_waiting_turn_alone(fields):
    waiting = calls(CallState.WAITING, CallState.ASKED, CallState.CLEARED, CallState.DONE)
    step = plans.take_over(beginning(EARLIER, waiting, kind="compact", **fields), TOOLS, CountedIds(), budget_of)
    assert (step.changes, step.messages) == ((), ())


def test_a_takeover_does_not_run_again_what_had_started_unless_it_may_be_repeated():
    step = plans.take_over(beginning(open_calls=OPEN, deaths=1), TOOLS, CountedIds(), budget_of)
    assert answers(step) == {"t0": (plans.UNKNOWN, True)}
    assert [call.tool_use_id for call in step.changes if call.state is CallState.CLEARED] == ["t1"]
    assert [event.data["tool_use_id"] for event in step.events] == ["t0"]
    assert (step.messages, step.closing) == ((), None)


def test_a_started_call_of_a_tool_that_is_gone_is_unknown():
    started = calls(CallState.DONE, CallState.DONE, CallState.DONE, CallState.STARTED)
    assert answers(plans.take_over(beginning(open_calls=started, deaths=1), TOOLS, CountedIds(), budget_of)) == {
        "t3": (plans.UNKNOWN, True)
    }


@pytest.mark.parametrize("open_calls", [calls(*[CallState.PENDING] * 4), calls(*[CallState.DONE] * 4), []])
def test_a_takeover_leaves_pending_and_finished_calls_as_they_are(open_calls):
    step = plans.take_over(beginning(open_calls=open_calls, deaths=1), TOOLS, CountedIds(), budget_of)
    assert (step.changes, step.events, step.messages, step.closing) == ((), (), (), None)


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        ({"deaths": 2}, RunStatus.INTERRUPTED, plans.NEVER_RAN),
        ({"deaths": 1, "cancel_requested": True}, RunStatus.CANCELLED, CANCELLED),
    ],
    ids=["died twice", "cancelled meanwhile"],
)
def test_a_takeover_that_ends_the_run_answers_every_call_and_says_so_once(fields, status, reason):
    step = plans.take_over(beginning(open_calls=OPEN, **fields), TOOLS, CountedIds(), budget_of)
    [results] = step.messages
    assert [block["tool_use_id"] for block in results.content] == ["t0", "t1", "t2", "t3"]
    assert answers(step) == {"t0": (plans.UNKNOWN, True), "t1": (plans.UNKNOWN, True), "t2": (reason, True)}
    assert kinds(step) == [*[EventType.TOOL_COMPLETED] * 3, EventType.SESSION_USAGE, EventType(f"turn.{status}")]
    assert step.closing is not None
    assert (step.closing.status, step.closing.last_input_tokens) == (status, 42)


def test_a_run_that_ends_without_open_calls_appends_nothing():
    step = plans.take_over(beginning(tail=TAIL[:1], deaths=2), TOOLS, CountedIds(), budget_of)
    assert (step.messages, step.changes) == ((), ())
    assert kinds(step) == [EventType.MESSAGE_DISCARDED, EventType.TURN_INTERRUPTED]
    assert step.closing is not None
    assert step.closing.last_input_tokens is None


@pytest.mark.parametrize(
    ("tail", "kind", "told"),
    [
        (TAIL[:1], "turn", True),
        (TAIL, "turn", False),
        ((TAIL[0], replace(TAIL[1], content=(text_block("wait"),), stop_reason="pause_turn")), "turn", True),
        (TAIL[:1], "compact", False),
    ],
)
def test_readers_are_told_to_forget_an_answer_that_was_being_written(tail, kind, told):
    step = plans.take_over(beginning(tail=tail, deaths=1, kind=kind), TOOLS, CountedIds(), budget_of)
    assert [event.data for event in step.events] == [{"message_id": None, "reason": "lease_lost"}] * told


def test_a_run_that_is_given_up_counts_the_compactions_it_had_made():
    step = plans.take_over(beginning(deaths=2, state={"compactions": 2, "private": {}}), TOOLS, CountedIds(), budget_of)
    assert (step.closing.status, step.closing.compactions) == (RunStatus.INTERRUPTED, 2)


@pytest.mark.parametrize(
    ("state", "tail", "told"),
    [
        ({}, TAIL, (42, False)),
        ({"estimated": 7}, TAIL, (7, True)),  # a record has made what was reported stale
        ({"estimated": 7}, TAIL[:1], (7, True)),
        ({}, EARLIER, None),
    ],
)
def test_a_run_that_is_given_up_tells_what_its_closing_stores(state, tail, told):
    spent = {Purpose.MAIN: Usage(input=40, cache_read=2, calls=1)}
    step = plans.take_over(beginning(tail, deaths=2, state=state, usage=spent), TOOLS, CountedIds(), budget_of)
    gauges = [event.data for event in step.events if event.type is EventType.SESSION_USAGE]
    assert [(data["last_input_tokens"], data["estimated"]) for data in gauges] == ([told] if told else [])
    assert step.closing.last_input_tokens == (told[0] if told else None)
    assert step.events[-1].data == {"stop_reason": None, "usage": usage_to_json(spent)}
    assert [data["level"] for data in gauges] == ["ok"] * len(gauges)


def test_a_compaction_begins_without_a_row_or_an_event():
    step = plans.start(beginning(TAIL, OPEN, kind="compact", input=RunInput(())), CountedIds(), budget_of)
    assert (step.messages, step.changes, step.events) == ((), (), ())


def test_the_command_for_one_becomes_a_row_of_the_user_alone_and_answers_no_open_call():
    command = RunInput((text_block("/compact"),))
    step = plans.start(beginning(TAIL, OPEN, kind="compact", input=command), CountedIds(), budget_of)
    [row] = step.messages
    assert (row.content, row.user_visible, row.agent_visible) == (command.content, True, False)
    assert (kinds(step), step.changes) == ([EventType.TURN_STARTED, EventType.MESSAGE_USER], ())
