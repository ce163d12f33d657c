"""The sliding window to compare with: before each call it drops the oldest closed batches until the request is under
the trigger. It counts as the double does, so it is never wrong, and sets the same breakpoints as hango."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.replay.recordings import Block, Message, Recording, reply_of, request_of, results_of
from bench.replay.settings import MAX_TOKENS, MODEL, Setting
from tests.double.exchange import Exchange
from tests.double.server import run_double
from tests.double.tokens import block_tokens, tool_tokens
from tests.journeys.house import client

HEADERS = {"x-api-key": "bench", "anthropic-version": "2023-06-01"}
CONTROL = {"type": "ephemeral"}


@dataclass(frozen=True, slots=True)
class Unit:
    """What is dropped at once: a request, or an answer with its results. `request`: of its turn, None for itself."""

    messages: tuple[Message, ...]
    tokens: int
    request: "Unit | None" = None


@dataclass(frozen=True, slots=True)
class Slid:
    """`over`: requests that no real model would have taken, since the newest batch alone is too large.
    `unslid`: tokens of the last request with nothing dropped."""

    exchanges: Sequence[Exchange]
    over: int
    unslid: int


async def slide(recording: Recording, setting: Setting) -> Slid:
    """The double has no window here: a request that is over it is priced all the same, and counted."""
    rate = setting.bytes_per_token
    tools = [{key: tool[key] for key in ("name", "description", "input_schema")} for tool in recording["tools"]]
    system = {"type": "text", "text": recording["system"]}
    fixed = block_tokens(system, rate) + sum(tool_tokens(tool, rate) for tool in tools)
    body = {"model": MODEL, "max_tokens": MAX_TOKENS, "tools": tools, "system": [_marked(system)]}
    start, unslid = 0, fixed
    async with run_double(bytes_per_token=rate) as double, client(double.base_url, headers=HEADERS) as http:
        double.play(recording)
        for units in _calls(recording, rate):
            unslid = fixed + sum(unit.tokens for unit in units)
            start = _start(units, start, setting.trigger - fixed)
            answer = await http.post("/v1/messages", json={**body, "messages": _request(units[start:])})
            answer.raise_for_status()
        over = sum(exchange.input_tokens > setting.window for exchange in double.requests)
        return Slid(double.requests, over, unslid)


def _calls(recording: Recording, rate: float) -> Iterator[Sequence[Unit]]:
    """What lies before each model call, oldest first."""
    units: list[Unit] = []
    for turn in recording["turns"]:
        words = request_of(turn)
        content = [{"type": "text", "text": words}] if isinstance(words, str) else words
        request = _unit(rate, {"role": "user", "content": content})
        units.append(request)
        for step in turn["steps"]:
            yield units
            answer = {"role": "assistant", "content": reply_of(step)}
            results = [{"role": "user", "content": results_of(step)}] if step["tool_results"] else []
            units.append(replace(_unit(rate, answer, *results), request=request))


def _unit(rate: float, *messages: Message) -> Unit:
    return Unit(messages, sum(block_tokens(block, rate) for message in messages for block in message["content"]))


def _start(units: Sequence[Unit], start: int, room: int) -> int:
    """The newest unit always stays; so does the request that a batch belongs to."""
    left = sum(unit.tokens for unit in units[start:])
    while start < len(units) - 1:
        request = units[start].request
        if left + (request.tokens if request else 0) < room:
            break
        left -= units[start].tokens
        start += 1
    return start


def _request(units: Sequence[Unit]) -> list[Message]:
    head = units[0].request
    messages = [message for unit in ([head] if head else []) + list(units) for message in unit.messages]
    for end in (-1, -3):
        if len(messages) >= -end:
            *before, last = messages[end]["content"]
            messages[end] = {**messages[end], "content": [*before, _marked(last)]}
    return messages


def _marked(block: Block) -> Mapping[str, Any]:
    return {**block, "cache_control": CONTROL}
