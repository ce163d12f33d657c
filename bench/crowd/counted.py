"""`hango serve` on a database that is there, which also tells what it holds: `GET /counts`."""

import asyncio
from typing import Any

from fastapi import FastAPI

from app import config
from app.logs import configure
from app.main import create_app, serve


def add_counts(app: FastAPI) -> None:
    """`readers`: subscriptions to sessions. `tasks`: of the event loop, this request's own among them."""

    async def counts() -> dict[str, int]:
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
    settings = config.load()
    configure(settings.log_level)
    app = create_app(settings, settings.database_url)
    add_counts(app)
    serve(app, settings)


if __name__ == "__main__":
    main()
