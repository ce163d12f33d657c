"""Every refusal of the provider's table, over the wire: which of them make a request smaller, and what leaves next."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from app.conversation.events import EventType
from app.conversation.messages import text_of
from app.conversation.run import RunStatus
from tests.double.control import Double
from tests.double.server import run_double
from tests.double.steps import BEFORE_END, Break, HttpError, Reply, overflow, say, text
from tests.rooms.agent.test_cached_prefix import MODEL, SUMMARY, works_over

PAIR = "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length"


@pytest.fixture
async def double() -> AsyncIterator[Double]:
    async with run_double() as double:
        double.script(*[Reply([text(f"answer {n} " + "word " * 900)]) for n in range(8)], purpose="main")
        double.script(*[say(SUMMARY)] * 9, purpose="summarize")
        yield double


async def after(double: Double, *steps) -> tuple:
    """A session of eight turns, and the run whose calls are answered by `steps`."""
    async with works_over(double) as works:
        session = await works.open(MODEL)
        process = works.process()
        process._runner._profile_of = small(process._runner._profile_of)
        for number in range(8):
            assert (await works.turn(process, session, f"turn {number}")).status is RunStatus.COMPLETED
        double.script(*steps, purpose="main")
        run = await works.turn(process, session, "and now?")
        rows = [text_of(row.content) for row in await works.rows(session)]
        retries = [event.data["step"] for event in await works.log(session)
                   if event.type is EventType.CONTEXT_OVERFLOW_RETRY]  # fmt: skip
        return run, rows, retries


def small(profile_of):
    """Profiles with a window in which eight turns stand below the trigger, and keep little."""
    return lambda session, model: replace(profile_of(session, model), context_window_tokens=20_000, keep_frac=0.05)


@pytest.mark.parametrize(
    ("steps", "retries", "status"),
    [
        ([overflow(208_310, 200_000), say("done")], ["overflow"], RunStatus.COMPLETED),
        ([HttpError(400, PAIR), say("done")], ["overflow"], RunStatus.COMPLETED),
        ([HttpError(400, "too many tokens"), HttpError(400, "prompt_too_long"), say("done")], ["overflow", "truncate"],
         RunStatus.COMPLETED),
        ([HttpError(413, "Request exceeds the maximum size"), say("done")], ["overflow"], RunStatus.COMPLETED),
        ([HttpError(400, "max_tokens: 9 > 8"), say("never")], [], RunStatus.FAILED),
        ([HttpError(429, "rate limit: too many tokens per minute"), say("done")], [], RunStatus.COMPLETED),
        ([HttpError(529, "Overloaded"), HttpError(529, "Overloaded"), say("done")], [], RunStatus.COMPLETED),
        ([HttpError(400, "messages.7: unknown rule"), say("done")], [], RunStatus.COMPLETED),
    ],
    ids=["too long", "input and max_tokens", "twice", "413", "other 400", "429", "529", "names a message"],
)  # fmt: skip
async def test_what_follows_each_refusal(double: Double, steps, retries, status):
    run, rows, found = await after(double, *steps)
    assert (run.status, found) == (status, retries)
    assert (rows[-1] == "done") == (status is RunStatus.COMPLETED)
    sizes = [exchange.input_tokens for exchange in double.of("main")[8 : 8 + len(steps)]]
    shrinks = bool(retries) or "unknown rule" in str(steps[0])
    assert all(later < sizes[0] for later in sizes[1:]) == (shrinks or len(sizes) == 1)
    assert not double.refused


async def test_a_window_that_fills_in_mid_answer_shows_the_answer_once(double: Double):
    cut = Reply([text("half an answer")], stop_reason="model_context_window_exceeded")
    run, rows, retries = await after(double, cut, say("a whole answer"))
    assert (run.status, retries) == (RunStatus.COMPLETED, ["overflow"])
    assert rows[-2:] == ["and now?", "a whole answer"]
    assert "half an answer" not in "".join(rows)


async def test_a_stream_that_breaks_off_between_two_overflows_is_only_repeated(double: Double):
    breaks = Reply([text("some words that were shown")], at={BEFORE_END: Break("reset")})
    run, rows, retries = await after(double, overflow(30_000, 20_000), breaks, say("done"))
    assert (run.status, retries, rows[-1]) == (RunStatus.COMPLETED, ["overflow"], "done")
    assert [exchange.purpose for exchange in double.requests[-3:]] == ["summarize", "main", "main"]
    before, after_it = (exchange.body["messages"] for exchange in double.of("main")[-2:])
    assert before == after_it
