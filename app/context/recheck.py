"""The rules of a view that grows: what was found legal before is not looked at again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import is_

from app.context.rules import (
    VIEW_RULES,
    Rule,
    Violation,
    call_ids,
    call_ids_legal,
    ends_with_user,
    first_violation,
    has_a_message,
    starts_with_user,
    violation,
)
from app.conversation.messages import Message

_OF_THE_BEGINNING = (has_a_message, starts_with_user, call_ids_legal)


@dataclass(frozen=True, slots=True)
class Checked:
    """`messages`: those before the newest assistant message of a request that was legal; `ids`: of their calls.

    Its batch is not closed, so it is looked at again.
    """

    messages: tuple[Message, ...] = ()
    ids: frozenset[object] = frozenset()


UNCHECKED = Checked()


def recheck(
    before: Checked, messages: tuple[Message, ...], continues: bool, head: bool
) -> tuple[Violation | None, Checked]:
    """What `violation` finds, and what the next request need not check while it begins with the same objects."""
    start = len(before.messages)
    if start >= len(messages) or not all(map(is_, before.messages, messages)):
        before, start = UNCHECKED, 0
    found = _newer(before, messages[start:], continues) if start else violation(messages, continues, head)
    if found:
        return replace(found, message=found.message + start), before
    newest = _newest_answer(messages)
    if newest <= start:
        return None, before
    return None, Checked(messages[:newest], before.ids.union(call_ids(messages[start:newest])))


def _newer(before: Checked, messages: Sequence[Message], continues: bool) -> Violation | None:
    """`messages` begin with an assistant one, so that every batch among them is whole."""
    return first_violation(_rules(before, continues), messages)


def _rules(before: Checked, continues: bool) -> Iterator[Rule]:
    yield partial(call_ids_legal, before=before.ids)
    for rule in VIEW_RULES:
        if rule not in _OF_THE_BEGINNING and not (continues and rule is ends_with_user):
            yield rule


def _newest_answer(messages: Sequence[Message]) -> int:
    """Place of the newest assistant message, 0 without one."""
    return next((place for place in range(len(messages) - 1, 0, -1) if messages[place].role == "assistant"), 0)
