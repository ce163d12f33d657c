"""The provider's rules that a request of ours could break, one small function each, composed in order.

General rules come first, so that a report names the plainest cause. Rule texts name positions and counts, no content.
Source: the Messages API's documentation and error texts.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.context.blocks import late_block, problem
from app.conversation.messages import Content, Message

_CALL = ("tool_use", "id")
_LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Violation:
    """`message` is an index into the messages that were checked."""

    message: int
    rule: str


Rule = Callable[[Sequence[Message]], Violation | None]


def violation(messages: Sequence[Message], continues: bool = False, head: bool = False) -> Violation | None:
    """The first rule a request breaks.

    `continues`: the last message may be an assistant one (pause_turn). `head`: the first message is a view head, which
    stands alone, so that a user message may follow it: the live API joins them.
    """
    rules = HEADED_RULES if head else VIEW_RULES
    return first_violation((rule for rule in rules if not (continues and rule is ends_with_user)), messages)


def first_violation(rules: Iterable[Rule], messages: Sequence[Message]) -> Violation | None:
    return next(filter(None, (rule(messages) for rule in rules)), None)


def is_legal_id(value: object) -> bool:
    return isinstance(value, str) and _LEGAL_ID.fullmatch(value) is not None


def has_a_message(messages: Sequence[Message]) -> Violation | None:
    return None if messages else Violation(0, "at least one message is required")


def starts_with_user(messages: Sequence[Message]) -> Violation | None:
    begins = not messages or messages[0].role == "user"
    return None if begins else Violation(0, "the first message must be a user message")


def ends_with_user(messages: Sequence[Message]) -> Violation | None:
    ends = not messages or messages[-1].role == "user"
    return None if ends else Violation(len(messages) - 1, "the last message must be a user message")


def roles_alternate(messages: Sequence[Message]) -> Violation | None:
    for index, (before, message) in enumerate(pairwise(messages), 1):
        if before.role == message.role:
            return Violation(index, f"two {message.role} messages in a row")
    return None


def alternate_after_head(messages: Sequence[Message]) -> Violation | None:
    found = roles_alternate(messages[1:])
    return found and Violation(found.message + 1, found.rule)


def contents_not_empty(messages: Sequence[Message]) -> Violation | None:
    for index, message in enumerate(messages):
        if not message.content:
            return Violation(index, "content is empty")
    return None


def blocks_legal(messages: Sequence[Message]) -> Violation | None:
    """No blank text, no thinking without signature, every block in a message of its role."""
    for index, message in enumerate(messages):
        for position, block in enumerate(message.content):
            if found := problem(message.role, block):
                return Violation(index, f"content.{position}: {found}")
    return None


def calls_come_last(messages: Sequence[Message]) -> Violation | None:
    for index, message in enumerate(messages):
        if len(message.content) > 1 and (position := late_block(message.content)) is not None:
            return Violation(index, f"content.{position}: {message.content[position]['type']} after tool_use")
    return None


def results_come_first(messages: Sequence[Message]) -> Violation | None:
    for index, message in enumerate(messages):
        if len(message.content) < 2:
            continue
        other = False
        for position, block in enumerate(message.content):
            is_result = block.get("type") == "tool_result"
            if is_result and other:
                return Violation(index, f"content.{position}: tool_result after other blocks")
            other = other or not is_result
    return None


def call_ids_legal(messages: Sequence[Message], before: Collection[object] = ()) -> Violation | None:
    """Ids fit `^[a-zA-Z0-9_-]{1,64}$` and none is used twice in the request. `before`: ids of earlier messages."""
    seen: set[object] = set()
    for index, message in enumerate(messages):
        if message.role == "user":
            continue
        for position, block in enumerate(message.content):
            if block.get("type") != "tool_use":
                continue
            if not is_legal_id(call_id := block.get("id")):
                return Violation(index, f"content.{position}: tool_use id is not 1 to 64 of a-z A-Z 0-9 _ -")
            if call_id in seen or call_id in before:
                return Violation(index, f"content.{position}: tool_use id is used twice")
            seen.add(call_id)
    return None


def call_ids(messages: Iterable[Message]) -> Iterator[object]:
    return (call for message in messages if message.role == "assistant" for call in _ids(message.content, *_CALL))


Ids = Sequence[object]
BatchRule = Callable[[Ids, Ids], Violation | None]


def all_answered(calls: Ids, results: Ids) -> Violation | None:
    missing = len(calls) - _count(calls, results)
    rule = f"{missing} of {len(calls)} tool_use ids have no tool_result in the next message"
    return Violation(0, rule) if missing else None


def none_stray(calls: Ids, results: Ids) -> Violation | None:
    stray = len(results) - _count(results, calls)
    rule = f"{stray} of {len(results)} tool_result ids name no tool_use of the message before"
    return Violation(1, rule) if stray else None


def _count(ids: Ids, known: Ids) -> int:
    lookup = set(known)
    return sum(one in lookup for one in ids)


def one_result_each(calls: Ids, results: Ids) -> Violation | None:
    rule = f"{len(results)} tool_result blocks for {len(calls)} tool_use ids, each has exactly one"
    return None if Counter(calls) == Counter(results) else Violation(1, rule)


def in_call_order(calls: Ids, results: Ids) -> Violation | None:
    return None if list(calls) == list(results) else Violation(1, "tool_result blocks are not in call order")


def batches(*rules: BatchRule) -> Rule:
    """A rule over every batch: ids of the calls, ids of the results after them; index 0 is the calls' message."""

    def check(messages: Sequence[Message]) -> Violation | None:
        for index, (calls, results) in enumerate(_batch_ids(messages), -1):
            if calls == results:
                continue
            for rule in rules:
                if found := rule(calls, results):
                    return Violation(index + found.message, found.rule)
        return None

    return check


def _batch_ids(messages: Sequence[Message]) -> Iterable[tuple[Ids, Ids]]:
    """For each gap, the one before the first message and the one behind the last included."""
    calls: Ids = []
    for message in messages:
        user = message.role == "user"
        yield calls, _ids(message.content, "tool_result", "tool_use_id") if user else []
        calls = [] if user else _ids(message.content, *_CALL)
    yield calls, []


def _ids(content: Content, kind: str, key: str) -> Ids:
    return [block.get(key) for block in content if block.get("type") == kind]


VIEW_RULES: tuple[Rule, ...] = (
    has_a_message,
    starts_with_user,
    ends_with_user,
    roles_alternate,
    contents_not_empty,
    blocks_legal,
    calls_come_last,
    results_come_first,
    call_ids_legal,
    batches(all_answered, none_stray, one_result_each, in_call_order),
)
HEADED_RULES = tuple(alternate_after_head if rule is roles_alternate else rule for rule in VIEW_RULES)
