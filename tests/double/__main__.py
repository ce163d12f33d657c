"""`python -m tests.double --port 9000`: a double for benchmarks and for curl."""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import uvloop

from tests.double.server import run_double
from tests.double.steps import say


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.double")
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--window", type=int, help="tokens, for every model")
    parser.add_argument("--bytes-per-token", type=float, default=3)
    parser.add_argument("--deltas", type=int, default=60, help="of the default reply")
    parser.add_argument("--delta-chars", type=int, default=20)
    parser.add_argument("--delay-ms", type=float, default=0, help="before each delta; 0 sends a reply in one piece")
    parser.add_argument("--transcript", type=Path, help="a recording to play instead of the default reply")
    parser.add_argument("--thinking", action="store_true", help="thinking blocks before each recorded step")
    return parser.parse_args()


def pace(delay_ms: float) -> Callable[[], Awaitable[None]] | None:
    return (lambda: asyncio.sleep(delay_ms / 1000)) if delay_ms else None


async def serve(options: argparse.Namespace) -> None:
    words = "0123456789 " * (options.deltas * options.delta_chars // 11 + 1)
    async with run_double(
        options.port,
        window=options.window,
        bytes_per_token=options.bytes_per_token,
        delta_chars=options.delta_chars,
        pace=pace(options.delay_ms),
        bind_thinking=options.thinking,
        keep=1000,
    ) as double:
        double.default = say(words[: options.deltas * options.delta_chars], whole=True)
        if options.transcript:
            double.play(json.loads(options.transcript.read_text("utf-8")), thinking=options.thinking)
        sys.stdout.write(f"double at {double.base_url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        uvloop.run(serve(arguments()))
