"""Imported transcripts: what makes one illegal, and the smallest change that makes it legal.

Neighbours of one role are legal, as the live API joins them: rules of order are checked on runs of neighbours. A
transcript may end with either role. Results of a batch in another order than its calls are legal too, the view orders
them. Ids are not judged here: illegal and repeated ones are minted anew on every import.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from app.context.batches import match, settle
from app.context.blocks import calls_last, problem, tidy
from app.context.rules import (
    Rule,
    all_answered,
    batches,
    blocks_legal,
    calls_come_last,
    contents_not_empty,
    first_violation,
    none_stray,
    one_result_each,
    results_come_first,
    starts_with_user,
)
from app.context.view import BEGINNING, EMPTY
from app.conversation.messages import Block, Content, Message, tool_uses
from app.errors import TranscriptInvalid

ROW_RULES: tuple[Rule, ...] = (starts_with_user, contents_not_empty, blocks_legal)
RUN_RULES: tuple[Rule, ...] = (
    calls_come_last,
    results_come_first,
    batches(all_answered, none_stray, one_result_each),
)


@dataclass(frozen=True, slots=True)
class Repair:
    """`message` is an index into the messages as they came."""

    message: int
    done: str


@dataclass(frozen=True, slots=True)
class _Row:
    index: int
    message: Message


def check_import(messages: Sequence[Message]) -> None:
    """Raises TranscriptInvalid naming the message and the rule. A list without messages is legal."""
    if found := first_violation(ROW_RULES, messages):
        raise TranscriptInvalid(found.message, found.rule)
    runs = _runs(_Row(index, message) for index, message in enumerate(messages))
    if found := first_violation(RUN_RULES, [_joined(run) for run in runs]):
        raise TranscriptInvalid(runs[found.message][0].index, found.rule)


def repair_import(messages: Sequence[Message]) -> tuple[list[Message], list[Repair]]:
    """A transcript that passes `check_import`, and what was done; a legal one comes back as it is.

    A run of neighbours that breaks a rule of order becomes one message.
    """
    rows, repairs = _tidied(messages)
    out: list[Message] = []
    calls: list[Block] = []
    for run in _runs(rows):
        mended, done = _mended(run, calls)
        out += mended
        repairs += [Repair(run[0].index, what) for what in done]
        calls = tool_uses(_joined(run).content) if run[0].message.role == "assistant" else []
    if calls:
        out.append(Message("user", settle(calls, ())))
        repairs.append(Repair(rows[-1].index, f"{len(calls)} missing results added as errors"))
    if out and out[0].role == "assistant":
        out.insert(0, Message("user", (BEGINNING,)))
        repairs.append(Repair(0, "a user message added in front"))
    return out, repairs


def _tidied(messages: Sequence[Message]) -> tuple[list[_Row], list[Repair]]:
    rows: list[_Row] = []
    repairs: list[Repair] = []
    for index, message in enumerate(messages):
        content = tidy(message.role, message.content)
        repairs += [Repair(index, f"dropped: {why}") for why in _problems(message)]
        if content:
            rows.append(_Row(index, message if content is message.content else Message(message.role, content)))
        elif message.role == "user":
            rows.append(_Row(index, Message("user", (EMPTY,))))
            repairs.append(Repair(index, "an empty message got a placeholder"))
        else:
            repairs.append(Repair(index, "an empty message was dropped"))
    return rows, repairs


def _problems(message: Message) -> list[str]:
    return [found for block in message.content if (found := problem(message.role, block))]


def _mended(run: Sequence[_Row], calls: Sequence[Block]) -> tuple[list[Message], list[str]]:
    whole = _joined(run)
    if whole.role == "assistant":
        content = calls_last(whole.content)
        done = [] if content is whole.content else ["tool_use moved behind other blocks"]
    else:
        content, done = _answered(whole.content, calls)
    return ([Message(whole.role, content)] if done else [row.message for row in run]), done


def _answered(content: Content, calls: Sequence[Block]) -> tuple[Content, list[str]]:
    """The content of a user run that follows `calls`, legal, and what had to be done."""
    matched, strays = match(calls, content)
    missing = sum(result is None for result in matched)
    done = [f"{missing} missing results added as errors"] if missing else []
    done += [f"{len(strays)} results without their call dropped"] if strays else []
    done += ["results moved to the front"] if results_come_first([Message("user", content)]) else []
    return (settle(calls, content) or (EMPTY,)), done


def _runs(rows: Iterable[_Row]) -> list[list[_Row]]:
    return [list(run) for _, run in groupby(rows, key=lambda row: row.message.role)]


def _joined(run: Sequence[_Row]) -> Message:
    first = run[0].message
    if len(run) == 1:
        return first
    return Message(first.role, tuple(block for row in run for block in row.message.content))
