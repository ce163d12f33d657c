from dataclasses import replace
from weakref import ref

from hypothesis import given

from app.context.estimate import HeuristicEstimator
from app.context.estimate_cache import CachedEstimator, SizeCache
from app.conversation.messages import Message, text_block
from app.conversation.request import ModelRequest, ToolDefinition
from tests.pure.context.histories import assistant, messages, user

EMPTY = ModelRequest("m", 1, "ses_1")
TOOL = ToolDefinition("read_file", "Reads a file.", {"type": "object"})


class Est100:
    """100 for each message, and it counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def estimate_request(self, request: ModelRequest) -> int:
        self.asked += 1
        return 100 * len(request.messages)


@given(messages(), messages())
def test_the_sums_are_the_estimates_of_the_whole(some: list[Message], others: list[Message]):
    plain, cached = HeuristicEstimator(), CachedEstimator(HeuristicEstimator())
    for held in (some, some + others, others):
        request = replace(EMPTY, system=(text_block("be brief"),), tools=(TOOL,), messages=tuple(held))
        assert cached.request(request) == plain.estimate_request(request)
        assert cached.request(replace(request, system=(), tools=())) == sum(map(cached.message, held))


def test_an_estimator_that_charges_by_message_is_kept():
    cached = CachedEstimator(Est100())
    assert cached.request(replace(EMPTY, messages=(user("a", "b"), assistant("c")))) == 200
    assert (cached.message(user("a")), cached.blocks(user("a", "b").content)) == (100, 0)


def test_what_was_weighed_once_is_not_weighed_again():
    inner = Est100()
    cached, block = CachedEstimator(inner), text_block("once")
    cached.blocks((block,))
    asked = inner.asked
    request = replace(EMPTY, messages=(Message("user", (block,)), Message("user", (block, block))))
    assert (cached.blocks((block, block)), cached.request(request)) == (0, 200)
    assert inner.asked == asked


def test_an_id_is_never_taken_for_another_values():
    cache: SizeCache[list[int]] = SizeCache(len)
    for size in range(500):
        assert cache.total([[0] * size]) == size


def test_values_made_anew_for_each_call_are_let_go_and_stored_ones_stay():
    weighed: list[str] = []
    alive: list[ref[str]] = []

    class Word(str):
        pass

    def new(text: str) -> Word:
        alive.append(ref(word := Word(text)))
        return word

    cache: SizeCache[Word] = SizeCache(lambda word: weighed.append(str(word)) or len(word), generation=10)
    stored = [new("stored") for _ in range(4)]
    for number in range(50):
        assert cache.total([*stored, new(f"new {number}")]) == 24 + len(f"new {number}")
    assert weighed.count("stored") == 4
    assert sum(1 for held in alive if held() is not None) <= 20
