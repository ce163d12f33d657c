"""What keeping every request inside the window costs: CPU of the chain per call, and the start of a turn behind a long
transcript."""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from app.agent.model_call import ask
from app.agent.tool_batch import finish_batch
from app.conversation.messages import Content, result_block, text_block
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.run import NewMessage
from app.conversation.session import NewSession, SessionSettings
from app.ports import Capabilities
from app.providers.anthropic.encode import encode
from app.providers.scripted import call, use
from app.storage.migrate import upgrade
from tests.double.exchange import Exchange
from tests.double.server import run_double
from tests.double.steps import Step, say
from tests.double.transcript import extract
from tests.journeys.house import House, open_house
from tests.postgres import start_test_cluster
from tests.twins import Works, echo

Value = TypeVar("Value")

SIZES = (100, 1_000, 5_000)
CALLS, WARM_UP = 25, 3
# Tokens; twice the largest window there is.
ROOMY = 2_000_000
LENGTHS = (1_000, 100_000)
TURNS = 25
WINDOW = 32_000
LINE = "The crate stands on quay seven, behind the yellow crane; its papers are in /harbour/papers/crate_{}.md. "


def main() -> None:
    print("\n== the context's own cost ==")
    asyncio.run(_chains())
    with tempfile.TemporaryDirectory() as folder:
        cluster = start_test_cluster(Path(folder))
        try:
            url = cluster.create_database("context")
            upgrade(url)
            asyncio.run(_turn_starts(url, Path(folder)))
        finally:
            cluster.stop()


async def _chains() -> None:
    print("CPU per call, median       chain ms   JSON ms   of it   adapter's JSON ms   of it")
    for size in SIZES:
        chain, plain, own = await _chain(size)
        ratios = f"{plain:>10.2f}{chain / plain:>8.2f}{own:>20.2f}{chain / own:>8.2f}"
        print(f"{size:>7,} messages{chain:>20.2f}{ratios}", flush=True)
    print("JSON: the same request through the standard library, and through the adapter. goal: at most 1.0 at 5,000")


async def _chain(size: int) -> tuple[float, float, float]:
    """Milliseconds: of a call up to the provider, of encoding its request, and of the adapter's encoding."""
    arrivals: list[float] = []
    requests: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Reply:
        arrivals.append(time.process_time())
        requests.append(request)
        return call("echo", {"text": LINE.format(len(requests))})

    works = Works(*[answer] * CALLS, tools=[echo()], capabilities=Capabilities(prompt_caching=True))
    rows = [_row(place) for place in range(size)]
    new = NewSession(works.ids.new("ses"), "t", (), "claude-sonnet-4-6", SessionSettings())
    session, _ = await works.sessions.create(new, rows, None)
    turn = await works.begin(session)
    # Everything stays in the view: what is measured is a call at which nothing is due.
    profile = replace(turn.profile, max_input_tokens=ROOMY, context_window_tokens=ROOMY)
    turn = replace(turn, profile=profile)
    times = []
    for _ in range(CALLS):
        begin = time.process_time()
        await ask(turn, False)
        times.append(arrivals[-1] - begin)
        await finish_batch(turn)
    bodies = [json.loads(encode(request)) for request in requests[WARM_UP:]]
    plain = _median_ms(bodies, lambda body: json.dumps(body, ensure_ascii=False))
    return statistics.median(times[WARM_UP:]) * 1000, plain, _median_ms(requests[WARM_UP:], encode)


def _row(place: int) -> NewMessage:
    """Four rows a turn: a request, a call, its result, a closing answer."""
    number, kind = divmod(place, 4)
    content: Content = (text_block(LINE.format(number) * 2),)
    if kind == 1:
        content = (*content, use("echo", {"text": LINE.format(number)}, f"toolu_old_{number}"))
    elif kind == 2:
        content = (result_block(f"toolu_old_{number}", LINE.format(number) * 12, False),)
    return NewMessage(f"msg_old_{place}", "assistant" if kind % 2 else "user", content)


def _median_ms(values: Sequence[Value], work: Callable[[Value], object]) -> float:
    times = []
    for value in values:
        begin = time.process_time()
        work(value)
        times.append(time.process_time() - begin)
    return statistics.median(times) * 1000


async def _turn_starts(url: str, folder: Path) -> None:
    """From the post of a turn to its model request, at sessions whose older rows are under a summary."""
    arrivals: list[float] = []

    def answer(exchange: Exchange) -> Step:
        if exchange.purpose == "summarize":
            return extract(exchange)
        arrivals.append(time.perf_counter())
        return say("done")

    async with run_double() as double, open_house(url, folder, double=double, max_body_bytes=2**28) as house:
        double.default = answer
        sessions = {length: await _session(house, length) for length in LENGTHS}
        times: dict[int, list[float]] = {length: [] for length in LENGTHS}
        for _ in range(TURNS):
            for length, session in sessions.items():
                begin = time.perf_counter()
                await house.turn(session)
                times[length].append(arrivals[-1] - begin)
        medians = [statistics.median(times[length][WARM_UP:]) * 1000 for length in LENGTHS]
    print("\nstored messages       turn start, median ms")
    for length, median in zip(LENGTHS, medians, strict=True):
        print(f"{length:>15,}{median:>28.1f}")
    print(f"ratio {medians[-1] / medians[0]:.2f} (goal: at most 1.3)")


async def _session(house: House, length: int) -> str:
    """An imported session after its first turn, which summarized all but the newest of it."""
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": LINE.format(place)} for place in range(length)]
    body = {"messages": messages, "context": {"context_window_tokens": WINDOW}}
    answer = await house.http.post("/v1/sessions", json=body, timeout=None)
    session = f"/v1/sessions/{answer.json()['id']}"
    run = await house.http.post(f"{session}/turns", json={"content": "go"}, params={"wait": "true"}, timeout=None)
    compactions = (await house.get(f"{session}/context"))["compactions"]
    print(f"{length:,} imported messages: first turn {run.json()['status']}, compactions {compactions}", flush=True)
    return session
