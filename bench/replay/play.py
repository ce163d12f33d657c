"""Plays one recording turn by turn through the HTTP API: the double is the model, the tools give recorded results."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.replay.recordings import Recording, request_of, tools_of
from bench.replay.settings import Setting
from tests.double.exchange import Exchange, Purpose
from tests.double.server import run_double
from tests.double.steps import HttpError, Script, Step, say
from tests.double.tokens import dumps
from tests.double.transcript import IDENTIFIER, extract
from tests.journeys.house import House, open_house

# Small ones would only cost time: nobody reads the previews here.
DELTA_CHARS = 2000
BATCH = "<batch number="
LINE = 300  # characters
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Played:
    """What was seen from outside. `exchanges`: all the double was asked; the rest was read back over HTTP, the messages
    as a user sees them.

    `archive`: the offload file's text, empty when there is none. `turns`: answers to the posts, up to the first that
    did not complete.
    """

    recording: Recording
    setting: Setting
    exchanges: Sequence[Exchange]
    turns: Sequence[Json]
    messages: Sequence[Json]
    events: Sequence[Json]
    context: Json
    archive: str

    def accepted(self, purpose: Purpose) -> list[Exchange]:
        return [exchange for exchange in self.exchanges if exchange.purpose == purpose and exchange.accepted]


async def play(recording: Recording, setting: Setting, database_url: str, folder: Path) -> Played:
    async with (
        _tools(recording, setting) as (recording, own, chosen),
        run_double(
            window=setting.window,
            bytes_per_token=setting.bytes_per_token,
            bind_thinking=setting.thinking is not None,
            delta_chars=DELTA_CHARS,
        ) as double,
        open_house(
            database_url,
            folder,
            double=double,
            **own,
            model_profiles=setting.profiles,
            context_preset=setting.preset,
        ) as house,
    ):
        summarizer = fails_every_second() if setting.failing else answer_aside
        double.play(recording, thinking=setting.thinking is not None, summarizer=summarizer)
        options = {**chosen, **({"thinking": setting.thinking} if setting.thinking else {})}
        session = await house.open(system=recording["system"], **options)
        turns = await _post_turns(house, session, recording)
        return Played(
            recording,
            setting,
            double.requests,
            turns,
            await _all(house, f"{session}/messages", visible_to="user"),
            await _all(house, f"{session}/events"),
            await house.get(f"{session}/context"),
            await _archive(house, session),
        )


@asynccontextmanager
async def _tools(recording: Recording, setting: Setting) -> AsyncIterator[tuple[Recording, Json, Json]]:
    """The recording as it will be stored, and what the server and the session are opened with."""
    if not setting.served:
        yield recording, {"tools": tools_of(recording)}, {}
        return
    from bench.replay.served import NAME, serve, served_form

    async with serve(recording) as url:
        yield (
            served_form(recording),
            {"tools": (), "mcp_allow": "127.0.0.1"},
            {"mcp_servers": [{"name": NAME, "url": url}]},
        )


async def _post_turns(house: House, session: str, recording: Recording) -> list[Json]:
    """A refused post is kept as its problem document, whose `status` is a number."""
    answers: list[Json] = []
    for turn in recording["turns"]:
        body = {"content": request_of(turn)}
        answer = await house.http.post(f"{session}/turns", json=body, params={"wait": "true"}, timeout=None)
        answers.append(answer.json())
        if answers[-1]["status"] != "completed":
            break
    return answers


async def _all(house: House, path: str, **params: str) -> list[Json]:
    page = await house.get(path, limit=1000, **params)
    found: list[Json] = page["data"]
    while page["next"]:
        page = await house.get(path, limit=1000, after=page["next"], **params)
        found += page["data"]
    return found


async def _archive(house: House, session: str) -> str:
    name = session.rpartition("/")[2]
    answer = await house.http.get(f"{session}/files/conversation_history/{name}.md")
    return answer.content.decode() if answer.status_code == 200 else ""


def answer_aside(exchange: Exchange) -> Step:
    """A summary, or one line of identifiers for each batch of tool calls."""
    batches = asked_pairs(exchange)
    if not batches:
        return extract(exchange)
    lines = [f"{n}: {' '.join(dict.fromkeys(IDENTIFIER.findall(batch)))[:LINE]}" for n, batch in enumerate(batches, 1)]
    return say("\n".join(lines))


def asked_pairs(exchange: Exchange) -> list[str]:
    """The batches of a request for summaries of tool pairs; none in any other one."""
    return str(exchange.body["messages"][0]["content"]).split(BATCH)[1:] if exchange.purpose == "summarize" else []


def fails_every_second() -> Script:
    """Every second request that is not a repeat fails, and its repeats fail too: no retry gets around it."""
    fates: dict[str, bool] = {}

    def choose(exchange: Exchange) -> Step:
        fails = fates.setdefault(dumps(exchange.body["messages"]), len(fates) % 2 == 1)
        return HttpError(500, "The summarizer is told to fail.") if fails else extract(exchange)

    return choose
