"""Estimates with the tables of tiktoken, which fetches them at its first use; without them the heuristic takes over.

No public tokenizer exists for current Claude models, so the figures are those of another family: usage corrects them.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import lru_cache
from importlib import import_module
from threading import Thread

from app.context.estimate import BlockEstimator, HeuristicEstimator
from app.ports import Estimator

log = logging.getLogger(__name__)

Count = Callable[[str], int]
TABLES = "o200k_base"
LOAD_TIMEOUT_S = 10.0
# Words by the heuristic alone: a tokenizer takes quadratic time on some endless ones, and the cache would keep them.
LONG_WORD = 128
CACHED_WORDS = 50_000


class TiktokenEstimator(BlockEstimator):
    def __init__(self, count: Count) -> None:
        super().__init__(monotonic(count))


def monotonic(count: Count) -> Count:
    """`count` word by word, so that more text is never fewer tokens: two tokens may join to one when text goes on.

    Only the first and the last word can be different ones in a longer text. They weigh their floor, which a longer
    word never falls below; the words between stay as they are.
    """
    heuristic = HeuristicEstimator().estimate

    def floor(word: str) -> int:
        return (heuristic(word) + 1) // 2

    @lru_cache(CACHED_WORDS)
    def short(word: str) -> int:
        return max(floor(word), count(" " + word))

    def whole(word: str) -> int:
        return short(word) if len(word) <= LONG_WORD else heuristic(word)

    def tokens(text: str) -> int:
        words = text.split()
        ends = words[:1] + words[max(1, len(words) - 1) :]
        return text.count("\n") + sum(map(floor, ends)) + sum(map(whole, words[1:-1]))

    return tokens


def load_tables() -> Count:
    """Raises what the import or the download raises."""
    encode = import_module("tiktoken").get_encoding(TABLES).encode_ordinary
    return lambda text: len(encode(text))


async def load_estimator(load: Callable[[], Count] = load_tables, timeout_s: float = LOAD_TIMEOUT_S) -> Estimator:
    """tiktoken's estimator, or the heuristic with one log line when its tables are not there in time."""
    try:
        count = await asyncio.wait_for(_in_daemon(load), timeout_s)
    except Exception as error:
        log.warning("tiktoken is not usable: estimating by the heuristic", extra={"reason": type(error).__name__})
        return HeuristicEstimator()
    return TiktokenEstimator(count)


async def _in_daemon(load: Callable[[], Count]) -> Count:
    """In a thread that nobody waits for at the end: a download that hangs has no timeout of its own."""
    outcome: Future[Count] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(load())
        except Exception as error:
            outcome.set_exception(error)

    Thread(target=run, name="tiktoken-tables", daemon=True).start()
    return await asyncio.wrap_future(outcome)
