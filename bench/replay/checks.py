"""What must hold after any replay. Each check gives its faults, one line each."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from bench.replay.play import Played
from bench.replay.recordings import messages_of
from tests.double.tokens import dumps

SHOWN = 300


def faults(played: Played) -> list[str]:
    checks = (refused, unfinished_turns, over_the_window, changed_messages, lost_calls, repeated_summaries)
    return [fault for check in checks for fault in check(played)]


def refused(played: Played) -> Iterator[str]:
    for exchange in played.exchanges:
        if exchange.broke_rule:
            yield f"request {exchange.number} ({exchange.purpose}) was refused: {exchange.error}"


def unfinished_turns(played: Played) -> Iterator[str]:
    recorded = len(played.recording["turns"])
    for number, turn in enumerate(played.turns, 1):
        if turn["status"] != "completed":
            yield f"turn {number} of {recorded}: {turn['status']}, {dumps(turn.get('error') or turn)[:SHOWN]}"


def over_the_window(played: Played) -> Iterator[str]:
    for exchange in (*played.accepted("main"), *played.accepted("summarize")):
        if exchange.input_tokens > played.setting.window:
            yield f"request {exchange.number} has {exchange.input_tokens} of {played.setting.window} tokens"


def changed_messages(played: Played) -> Iterator[str]:
    """What a user sees is the recording to the byte, whatever was compacted; thinking is what the double signed."""
    expected = expected_messages(played)
    stored = [dumps({"role": row["role"], "content": row["content"]}) for row in played.messages]
    for seq, (one, other) in enumerate(zip_longest(expected, stored, fillvalue="nothing"), 1):
        if one != other:
            yield f"message {seq} was recorded as {one[:SHOWN]} and is stored as {other[:SHOWN]}"
            return


def expected_messages(played: Played) -> list[str]:
    thoughts = iter([thinking(exchange.blocks) for exchange in played.accepted("main")])
    expected = []
    for message in messages_of(played.recording):
        before = next(thoughts, []) if message["role"] == "assistant" else []
        expected.append(dumps({"role": message["role"], "content": [*before, *message["content"]]}))
    return expected


def thinking(blocks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [block for block in blocks if block["type"] == "thinking"]


def lost_calls(played: Played) -> Iterator[str]:
    """Every tool call that has left some view is in the offload file."""
    lost = sorted(call for call in evicted_calls(played) if call not in played.archive)
    if lost:
        yield f"{len(lost)} evicted calls are not in the offload file, {lost[0]} among them"


def evicted_calls(played: Played) -> set[str]:
    known: set[str] = set()
    evicted: set[str] = set()
    for exchange in played.accepted("main"):
        shown = {call for message in exchange.body["messages"] for call in call_ids(message["content"])}
        evicted |= known - shown
        known |= {*shown, *call_ids(exchange.blocks)}
    return evicted


def call_ids(content: str | Sequence[Mapping[str, Any]]) -> Iterator[str]:
    return (block["id"] for block in content if not isinstance(block, str) and block["type"] == "tool_use")


def repeated_summaries(played: Played) -> Iterator[str]:
    """A compaction happens before one model call, and the answer of that call ends it."""
    accepted = 0
    for event in played.events:
        if event["type"] == "message.assistant":
            accepted = 0
        elif event["type"] == "context.compacted" and event["data"]["tier"] == "summarization":
            accepted += 1
            if accepted > 1:
                yield f"event {event['seq']}: {accepted} summaries before one model call"
