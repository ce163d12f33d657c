"""One job plays one recording under one setting; two run at a time, each in a process of its own."""

import asyncio
import logging
import multiprocessing
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from app.storage.migrate import upgrade
from bench.replay.checks import faults, refused, unfinished_turns
from bench.replay.identifiers import Kept, kept
from bench.replay.play import Played, asked_pairs, play
from bench.replay.prices import Price, price
from bench.replay.recordings import load, messages_of, recordings
from bench.replay.settings import SETTINGS, Setting
from bench.sliding import slide
from tests.postgres import start_test_cluster

PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Slid:
    """The sliding window's figures. `passes`: without it the recording would have passed the trigger."""

    price: Price
    kept: Kept
    over: int
    passes: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """`calls`: accepted main calls. `price` includes the summarizer's; `main` does not. `pair_calls`: for summaries of
    tool pairs. `refused`: requests; `failed`: turns."""

    recording: str
    setting: Setting
    faults: Sequence[str]
    calls: int
    price: Price
    main: Price
    kept: Kept
    epochs: int
    compactions: int
    summarizer_calls: int
    pair_calls: int
    refused: int
    failed: int
    oversized: int
    seconds: float
    slid: Slid | None = None


def run_jobs(words: Sequence[str]) -> list[Outcome]:
    """Those whose setting or recording is named by one of `words`; all without any. Prints each one's faults."""
    jobs = [
        (setting, path)
        for setting in SETTINGS
        for path in recordings()
        if not path.name.startswith(setting.skip) or not setting.skip
        if not words or setting.name in words or any(word in path.stem for word in words)
    ]
    # The long ones first, so that none is left over at the end.
    jobs.sort(key=lambda job: (job[0].priced, job[1].stat().st_size), reverse=True)
    with tempfile.TemporaryDirectory() as folder:
        cluster = start_test_cluster(Path(folder))
        try:
            url = cluster.create_database("replay")
            upgrade(url)
            return _run(jobs, url)
        finally:
            cluster.stop()


def _run(jobs: Sequence[tuple[Setting, Path]], url: str) -> list[Outcome]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        futures = [pool.submit(run_job, setting, path, url) for setting, path in jobs]
        done: list[Outcome] = []
        for future in as_completed(futures):
            done.append(future.result())
            for fault in done[-1].faults:
                print(f"FAULT {done[-1].setting.name} {done[-1].recording}: {fault}", flush=True)
    return sorted(done, key=lambda outcome: (SETTINGS.index(outcome.setting), outcome.recording))


def run_job(setting: Setting, path: Path, database_url: str) -> Outcome:
    # Neither settings nor a proxy of the user's own stand between the parts.
    for name in list(os.environ):
        if name.startswith("HANGO_") or name.lower().endswith("_proxy"):
            del os.environ[name]
    # What fails on purpose is warned of.
    logging.disable(logging.WARNING)
    return asyncio.run(_outcome(setting, path, database_url))


async def _outcome(setting: Setting, path: Path, database_url: str) -> Outcome:
    recording, begin = load(path), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        played = await play(recording, setting, database_url, Path(folder))
    main, aside = played.accepted("main"), played.accepted("summarize")
    pairs = [exchange for exchange in aside if asked_pairs(exchange)]
    return Outcome(
        recording=path.stem,
        setting=setting,
        faults=faults(played),
        calls=len(main),
        price=price([*main, *aside]),
        main=price(main),
        kept=kept(list(messages_of(recording)), main),
        epochs=played.context["epochs"],
        compactions=played.context["compactions"],
        summarizer_calls=len(aside) - len(pairs),
        pair_calls=len(pairs),
        refused=len(list(refused(played))),
        failed=len(list(unfinished_turns(played))),
        oversized=sum(exchange.oversized for exchange in main),
        seconds=time.perf_counter() - begin,
        slid=await _slid(played) if setting.priced else None,
    )


async def _slid(played: Played) -> Slid:
    slid = await slide(played.recording, played.setting)
    left = kept(list(messages_of(played.recording)), slid.exchanges)
    return Slid(price(slid.exchanges), left, slid.over, slid.unslid >= played.setting.trigger)
