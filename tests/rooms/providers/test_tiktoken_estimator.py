import logging
from threading import Event

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.context.estimate import HeuristicEstimator
from app.conversation.messages import Message, text_block
from app.conversation.request import ModelRequest, ToolDefinition
from app.providers.tiktoken_estimator import LONG_WORD, TiktokenEstimator, load_estimator, monotonic

TEXTS = st.one_of(
    st.text(alphabet="ab \n\té漢🙂{}0", max_size=60), st.sampled_from(("x" * LONG_WORD, "y" * 4 * LONG_WORD, " z "))
)


def joining(text: str) -> int:
    """Every third letter more makes one token of all before: the worst a tokenizer does."""
    return 1 if len(text) % 3 == 0 else len(text)


@given(TEXTS, TEXTS)
@example("wor", "d")
@example("the end", "ing")
def test_more_text_is_never_fewer_tokens_even_where_tokens_join(first: str, second: str):
    count = monotonic(joining)
    assert count(first + second) >= max(count(first), count(second))


def test_the_words_within_a_text_are_counted_by_the_tables():
    words = "one two three four five six seven eight".split()
    count = monotonic(lambda text: 10 if text.strip() in words[1:-1] else 1000)
    assert 60 < count(" ".join(words)) < 70


def test_an_endless_word_never_reaches_the_tables():
    seen: list[int] = []
    monotonic(lambda text: seen.append(len(text)) or 1)(f"a {'x' * 100_000} b c")
    assert max(seen) <= LONG_WORD + 1


def test_a_request_is_the_sum_of_its_parts():
    estimator = TiktokenEstimator(lambda text: len(text))
    request = ModelRequest("m", 1, "ses_1", messages=(Message("user", (text_block("go on now"),)),))
    tool = ToolDefinition("read_file", "Reads a file.", {"type": "object"})
    more = ModelRequest("m", 1, "ses_1", (text_block("be brief"),), (tool,), request.messages)
    assert estimator.estimate_request(more) > estimator.estimate_request(request) > estimator.estimate("go on now")


async def test_the_tables_are_used_when_they_load():
    assert isinstance(await load_estimator(lambda: len), TiktokenEstimator)


async def test_without_the_tables_the_heuristic_estimates_and_the_log_says_so_once(caplog: pytest.LogCaptureFixture):
    def refuse():
        raise ConnectionError("no network")

    with caplog.at_level(logging.WARNING):
        estimator = await load_estimator(refuse)
        estimator.estimate("one")
        estimator.estimate("two")
    assert isinstance(estimator, HeuristicEstimator)
    assert [(record.levelname, record.reason) for record in caplog.records] == [("WARNING", "ConnectionError")]


async def test_a_download_that_hangs_is_left_behind(caplog: pytest.LogCaptureFixture):
    released, ended = Event(), Event()

    def hang():
        released.wait(60)
        ended.set()
        return len

    estimator = await load_estimator(hang, timeout_s=0.01)
    released.set()
    assert isinstance(estimator, HeuristicEstimator)
    assert [record.reason for record in caplog.records] == ["TimeoutError"]
    assert ended.wait(60)


async def test_a_missing_library_or_network_is_no_error():
    estimator = await load_estimator()
    assert estimator.estimate("some words to weigh") > 0
