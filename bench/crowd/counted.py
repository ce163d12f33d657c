"""`hango serve`, which also tells what it holds: `GET /counts`."""

import asyncio
import ctypes
import gc
from typing import Any

from fastapi import FastAPI

from app import cli
from app import main as wiring


def add_counts(app: FastAPI) -> None:
    """`readers`: subscriptions to sessions. `tasks`: of the event loop, this request's own among them.

    `trim`: gives what is free back to the system before, so that memory tells what is held and not what was once.
    """

    async def counts(trim: bool = False) -> dict[str, int]:
        if trim:
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)
        services: Any = app.state.services
        turns = services.turns
        return {
            "readers": sum(map(len, turns._broadcast._subscriptions.values())),
            "runs": len(turns._runner.leases),
            "connections": services.database.in_use,
            "tasks": len(asyncio.all_tasks()),
        }

    app.add_api_route("/counts", counts)


def main() -> None:
    create = wiring.create_app

    def create_counted(*arguments: Any, **options: Any) -> FastAPI:
        app = create(*arguments, **options)
        add_counts(app)
        return app

    wiring.create_app = create_counted
    raise SystemExit(cli.main(["serve"]))


if __name__ == "__main__":
    main()
