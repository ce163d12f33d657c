"""`python -m bench [all | server | context | replay [words] | load [words]]`; `all` is without `load`.

Figures are ratios within one run: absolute times depend on the machine."""

import argparse

from bench import context, server
from bench.crowd.report import load
from bench.replay.jobs import run_jobs
from bench.replay.recordings import BESIDE, FOLDER, recordings
from bench.replay.report import report


def replay(words: list[str]) -> None:
    """`words`: names of settings, or parts of the names of recordings; all without any."""
    print("\n== recorded sessions, played through the HTTP API ==", flush=True)
    if recordings():
        report(run_jobs(words))
    else:
        print(f"skipped: no recordings in ${FOLDER} nor in {BESIDE.parent.name}/{BESIDE.name} beside the clone")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("part", nargs="?", choices=("all", "server", "context", "replay", "load"), default="all")
    parser.add_argument("words", nargs="*", help="for replay: settings or recordings; for load: parts")
    options = parser.parse_args()
    if options.part in ("all", "server"):
        server.main()
    if options.part in ("all", "context"):
        context.main()
    if options.part in ("all", "replay"):
        replay(options.words)
    if options.part == "load":
        load(options.words)


if __name__ == "__main__":
    main()
