"""Wiring only: settings -> adapters -> application."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI

from app.agent.turn import Workbench
from app.api.app import create_api
from app.api.connection import Connection
from app.api.requests import Services
from app.api.sse import PING_S
from app.config import Settings
from app.errors import StartupError, StoreUnavailable
from app.instruments.vitals import Vitals
from app.mcp.servers import McpServers
from app.middleware.chain import nothing_volatile
from app.middleware.stack import STACK, has_tiers
from app.middleware.system_blocks import BASE
from app.ports import Estimator, MetricsPage, Provider, RunStore, Tool
from app.providers.model_limits import ModelLimits
from app.storage.engine import Pool
from app.storage.events import PostgresEvents
from app.storage.ledger import PostgresLedger
from app.storage.runs import PostgresRuns
from app.storage.sessions import PostgresSessions
from app.storage.transcript import PostgresTranscript
from app.system import (
    RandomIds,
    SystemClock,
    collect,
    collect_grown,
    resident_bytes,
    return_large_blocks,
    switch_often,
)
from app.tools.registry import Registry
from app.tools.session_tools import SessionTools
from app.turns.service import Turns
from app.turns.subagents import Bounds, Subagents
from app.wiring import (
    Delegation,
    make_closer,
    make_context_settings,
    make_estimator,
    make_files,
    make_library,
    make_limits,
    make_notebook,
    make_provider,
    make_readiness,
    make_sessions,
    make_tool_servers,
    make_transfers,
    make_turns,
    own_tools,
    rendered,
    skills_of,
)

if TYPE_CHECKING:
    from app.instruments.start import Instruments

log = logging.getLogger("hango")

# After the drain streams end at once; what is left gets this long.
SHUTDOWN_S = 3
# Between two looks at the embedded database, and so between two attempts to start it again.
KEEP_S = 1


def create_app(
    settings: Settings,
    database_url: str,
    provider: Provider | None = None,
    tools: Sequence[Tool] | None = None,
    ping_s: float = PING_S,
    keep_database: Callable[[], None] | None = None,
    instruments: "Instruments | None" = None,
    when_warm: Callable[[], None] | None = None,
) -> FastAPI:
    """The application; its adapters live as long as its lifespan.

    `provider` None: the one of the settings. `tools` None: the file tools. `ping_s`: between pings of a silent stream.
    `keep_database`: called every second on the event loop's thread, to start an embedded database again that has ended.
    `instruments`: what `start_instruments` gave. `when_warm`: called once all that is needed is imported.
    """

    servers = make_tool_servers(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        pool = Pool(database_url, settings.db_pool_size)
        model = provider or make_provider(settings)
        page = instruments.page if instruments else None
        services = make_services(settings, pool, model, await make_estimator(settings), tools, ping_s, page, servers)
        app.state.services = services
        if instruments is not None:
            instruments.pulse.watch(partial(_vitals, services.turns, pool))

        @asynccontextmanager
        async def heartbeat_store() -> AsyncIterator[RunStore]:
            own = Pool(database_url, 1)
            try:
                yield PostgresRuns(own, settings.lease_s)
            finally:
                await own.close()

        await services.turns.start(heartbeat_store)
        tasks = [asyncio.create_task(_warm_up(model, when_warm))]
        if keep_database is not None:
            tasks.append(asyncio.create_task(_keep(keep_database)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await services.readiness.stop()
            if instruments is not None:
                instruments.pulse.unwatch()
            await services.turns.stop()
            if servers is not None:
                await servers.aclose()
            await model.aclose()
            await pool.close()

    return create_api(lifespan, settings.api_keys, settings.max_body_bytes)


def make_services(
    settings: Settings,
    pool: Pool,
    provider: Provider,
    estimator: Estimator,
    given_tools: Sequence[Tool] | None,
    ping_s: float,
    metrics: MetricsPage | None,
    servers: McpServers | None,
) -> Services:
    transcript, runs, events = PostgresTranscript(pool), PostgresRuns(pool, settings.lease_s), PostgresEvents(pool)
    stores = PostgresSessions(pool)
    notebook = make_notebook(settings, pool, stores, provider, estimator) if settings.memory else None
    files = rendered(make_files(settings), transcript, notebook, stores)
    library = make_library(settings)
    delegation = Delegation(settings.subagents)
    own = own_tools(files, notebook, library) if given_tools is None else given_tools
    own = (*own, *delegation.tools)
    models = ModelLimits(settings.profile, provider, settings.count_tokens_timeout_s)
    bench = Workbench(
        provider=provider,
        tools=Registry(own),
        stack=STACK,
        transcript=transcript,
        clock=SystemClock(),
        ids=RandomIds(),
        limits=make_limits(settings),
        ledgers=PostgresLedger(pool),
        files=files,
        estimator=estimator,
        base_system=(BASE,),
        settings=make_context_settings(settings),
        tiers=has_tiers(STACK),
        learn=models.learn,
        volatile=notebook.blocks if notebook else nothing_volatile,
        more_tools=SessionTools(own, servers) if servers else None,
        after_run=delegation.after_run,
        skills=skills_of(library),
    )
    turns = make_turns(settings, bench, runs, events, models.profile)
    bounds = Bounds(settings.subagent_depth, settings.max_subagents_per_turn)
    delegation.subagents = Subagents(stores, turns, events, bench, bounds)
    sessions = make_sessions(settings, stores, bench, models.profile, servers)
    return Services(
        sessions=sessions,
        turns=turns,
        transcript=transcript,
        events=events,
        files=files,
        database=pool,
        profiles=settings.profiles(),
        default_model=settings.model_name,
        ping_s=ping_s,
        readiness=make_readiness(turns, pool, files),
        metrics=metrics,
        closer=make_closer(stores, sessions, notebook),
        transfers=make_transfers(sessions),
    )


def start_instruments(settings: Settings) -> "Instruments | None":
    """Before the application is made, once in a process. None when nothing is asked for: the SDK is not imported."""
    page = settings.metrics and not settings.otel_sdk_disabled
    if not (page or settings.sends_traces or settings.sends_metrics):
        return None
    from app.instruments.start import Wanted, start

    return start(Wanted(page, settings.sends_metrics, settings.sends_traces, settings.otel_content))


async def _vitals(turns: Turns, pool: Pool) -> Vitals:
    try:
        queued = await turns.runs.count_queued()
    except StoreUnavailable:
        queued = None
    return Vitals(turns.live_runs, queued, turns.open_streams, pool.in_use, pool.idle)


async def _warm_up(provider: Provider, when_warm: Callable[[], None] | None) -> None:
    """A provider's library may take seconds to import: after the port answers, before the first turn."""
    warm_up = getattr(provider, "warm_up", None)
    if warm_up is not None:
        await warm_up()
    if when_warm is not None:
        when_warm()


async def _keep(keep_database: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(KEEP_S)
        keep_database()


class Server(uvicorn.Server):
    """Told to stop it drains first: uvicorn closes its listener as soon as it is told to exit. A second signal ends
    the drain."""

    def __init__(self, config: uvicorn.Config, drain_s: float = 0) -> None:
        super().__init__(config)
        self._drain_s = drain_s
        self._drain: asyncio.Task[None] | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        collecting = (collect(SystemClock()), collect_grown(SystemClock(), resident_bytes))
        tasks = [asyncio.create_task(one) for one in collecting]
        try:
            await super().serve(sockets)
        finally:
            for task in tasks:
                task.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Not recorded, as the base class does to raise the signal again: what follows `serve` must still be done."""
        asyncio.get_running_loop().call_soon_threadsafe(self._told, sig)

    def _told(self, sig: int) -> None:
        services = running_services(self.config.app)
        if self._drain is None and services is not None:
            self._drain = asyncio.create_task(self._drain_out(services.turns))
        else:
            self.force_exit = self.should_exit and sig == signal.SIGINT
            self._exit()

    async def _drain_out(self, turns: Turns) -> None:
        try:
            await turns.drain(self._drain_s)
        finally:
            self._exit()

    def _exit(self) -> None:
        """Ends the streams: each would hold the shutdown up otherwise."""
        self.should_exit = True
        end_streams(self.config.app)


def end_streams(app: Any) -> None:
    if (services := running_services(app)) is not None:
        services.turns.end_streams()


def running_services(app: Any) -> Services | None:
    """None before the application has started."""
    services: Services | None = getattr(app.state, "services", None)
    return services


def serve(app: FastAPI, settings: Settings) -> None:
    """Serves until SIGTERM or SIGINT. Raises StartupError when the address is taken."""
    with _listen(settings) as listener:
        config = uvicorn.Config(
            app,
            http=Connection,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=SHUTDOWN_S,
            server_header=False,
        )
        _announce(settings, listener.getsockname()[1])
        switch_often()
        return_large_blocks()
        Server(config, settings.drain_s).run(sockets=[listener])


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise StartupError(f"HANGO_HOST, HANGO_PORT: cannot listen: {error.strerror}") from error


def _announce(settings: Settings, port: int) -> None:
    place = " (no ANTHROPIC_API_KEY: a small offline agent answers)" if settings.provider_name == "offline" else ""
    log.info("provider %s, model %s%s", settings.provider_name, settings.model_name, place)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    log.info("serving on http://%s:%s, API page at /docs, process %s", host, port, os.getpid())
