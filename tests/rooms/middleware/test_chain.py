"""What each place of the chain adds, where no tier has anything to do."""

import pytest
from hypothesis import given

from app.context.rules import violation
from app.conversation.messages import text_block
from app.conversation.reply import Reply
from app.conversation.request import Breakpoint, ModelRequest, ToolDefinition
from app.errors import ViewInvalid
from app.middleware.chain import Call, Handler, compose
from app.middleware.max_tokens import clamp
from app.middleware.validator import validator
from app.ports import Capabilities
from app.providers.anthropic.encode import encode
from tests.pure.context.histories import answer, assistant, call_block, histories, user
from tests.rooms.middleware.chain_room import BLANK, Exit, a_call, request_of, through, written

TOOLS = tuple(ToolDefinition(name, f"Does {name}.", {"type": "object"}) for name in ("b", "c", "a"))
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


async def test_the_first_middleware_is_the_outermost():
    seen: list[str] = []

    def named(name: str):
        async def middleware(request: ModelRequest, call: Call, call_next: Handler) -> Reply:
            seen.append(f"{name} in")
            reply = await call_next(request, call)
            seen.append(f"{name} out")
            return reply

        return middleware

    await compose([named("a"), named("b")], Exit())(BLANK, a_call())
    assert seen == ["a in", "b in", "b out", "a out"]


async def test_tools_leave_in_the_same_order_whatever_order_they_came_in(stored):
    rows = stored([user("hi")])
    first = await request_of(rows, tools=TOOLS)
    second = await request_of(rows, tools=TOOLS[::-1])
    assert [tool.name for tool in first.tools] == ["a", "b", "c"]
    assert encode(first) == encode(second)


async def test_a_later_request_repeats_the_bytes_of_the_earlier_one(stored):
    earlier = [user("do it"), assistant(THOUGHT, "I look", call_block("t1")), user(answer("t1"))]
    later = [*earlier, assistant("found"), user("go on")]
    first = await request_of(stored(earlier), tools=TOOLS)
    second = await request_of(stored(later), tools=TOOLS[1:] + TOOLS[:1])
    assert second.messages[: len(first.messages)] == first.messages
    assert (second.system, second.tools) == (first.system, first.tools)


@given(histories())
async def test_any_history_becomes_a_legal_request_and_stays_as_it_was(rows):
    before = written(rows)
    request = await request_of(rows)
    assert written(rows) == before
    assert violation(request.messages) is None
    assert len(request.breakpoints) <= 4


@pytest.mark.parametrize(
    ("asked", "leaves"), [(None, 8000), (5, 5), (8000, 8000), (9000, 8000)], ids=["none", "less", "all", "more"]
)
async def test_max_tokens_is_what_was_asked_within_what_the_model_may_write(asked, leaves):
    assert (await through([clamp], BLANK, a_call(max_tokens=asked))).max_tokens == leaves


async def test_a_call_thinks_as_the_session_asks_where_the_provider_can(stored):
    rows, thinking = stored([user("hi")]), {"type": "enabled", "budget_tokens": 2048}
    assert (await request_of(rows, thinking=thinking)).thinking == thinking
    assert (await request_of(rows, thinking=thinking, capabilities=Capabilities())).thinking is None


INVALID = {
    "no message": [],
    "assistant last": [user("a"), assistant("b")],
    "unanswered call": [user("a"), assistant(call_block("t1")), user("b")],
    "stray result": [user("a"), assistant("b"), user(answer("t1"))],
    "blank text": [user("a"), assistant("b"), user(" ")],
    "repeated id": [
        user("a"), assistant(call_block("t1")), user(answer("t1")), assistant(call_block("t1")), user(answer("t1"))
    ],
}  # fmt: skip


@pytest.mark.parametrize("messages", INVALID.values(), ids=INVALID)
async def test_a_request_that_the_provider_would_refuse_is_not_sent(messages):
    exit_ = Exit()
    request = ModelRequest("m", 1, "ses_1", messages=tuple(messages))
    broken = violation(messages)
    assert broken is not None
    with pytest.raises(ViewInvalid) as refused:
        await compose([validator], exit_)(request, a_call())
    assert exit_.sent == []
    assert (refused.value.code, refused.value.extra) == (
        "view_invalid", {"message": broken.message, "seq": None, "rule": broken.rule},
    )  # fmt: skip


CONTENT = (user("a"), assistant(THOUGHT, "b"), user("c"))
MISPLACED = {
    "five of them": [Breakpoint(0, 0)] * 5,
    "on thinking": [Breakpoint(0, 0), Breakpoint(1, 0)],
    "on blank system text": [Breakpoint(None, 0)],
}


@pytest.mark.parametrize("points", MISPLACED.values(), ids=MISPLACED)
async def test_a_request_with_a_misplaced_breakpoint_is_not_sent(points):
    exit_ = Exit()
    request = ModelRequest("m", 1, "s", system=(text_block(" "),), messages=CONTENT, breakpoints=tuple(points))
    with pytest.raises(ViewInvalid, match="breakpoint"):
        await compose([validator], exit_)(request, a_call())
    assert exit_.sent == []


async def test_only_a_paused_answer_may_come_last(stored):
    rows = stored([user("a"), assistant("half")])
    assert (await request_of(rows, continues=True)).messages[-1].role == "assistant"
    with pytest.raises(ViewInvalid):
        await request_of(rows)
