"""Wiring only: settings -> adapters -> application."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from app.agent.turn import Limits, Workbench
from app.api.app import create_api
from app.api.requests import Services
from app.config import Settings
from app.context.estimate import HeuristicEstimator
from app.conversation.model_profile import ModelProfile
from app.conversation.session import Session
from app.filesystem.local import LocalFiles
from app.filesystem.memory import MemoryFiles
from app.filesystem.results import ResultFiles
from app.middleware.stack import STACK
from app.middleware.system_blocks import BASE
from app.ports import FileBackend, Provider, RunStore
from app.sessions.profiles import effective_profile
from app.sessions.service import Sessions
from app.storage.engine import Pool
from app.storage.events import PostgresEvents
from app.storage.runs import PostgresRuns
from app.storage.sessions import PostgresSessions
from app.storage.transcript import PostgresTranscript
from app.system import RandomIds, SystemClock
from app.tools.file_tools import file_tools
from app.tools.registry import Registry
from app.turns.service import Turns

log = logging.getLogger("hango")

# Streams end at once on a signal; what is left gets this long.
SHUTDOWN_S = 3


def create_app(settings: Settings, database_url: str, provider: Provider | None = None) -> FastAPI:
    """The application; its adapters live as long as its lifespan. `provider` None: the one of the settings."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        pool = Pool(database_url, settings.db_pool_size)
        model = provider or make_provider(settings)
        services = make_services(settings, pool, model)
        app.state.services = services

        @asynccontextmanager
        async def heartbeat_store() -> AsyncIterator[RunStore]:
            own = Pool(database_url, 1)
            try:
                yield PostgresRuns(own, settings.lease_s)
            finally:
                await own.aclose()

        await services.turns.start(heartbeat_store)
        warm_up = asyncio.create_task(_warm_up(model))
        try:
            yield
        finally:
            warm_up.cancel()
            await services.turns.stop()
            await model.aclose()
            await pool.aclose()

    keys = [(tenant, key.get_secret_value()) for tenant, key in settings.api_keys]
    return create_api(lifespan, keys, settings.max_body_bytes)


def make_services(settings: Settings, pool: Pool, provider: Provider) -> Services:
    ids, estimator = RandomIds(), HeuristicEstimator()
    transcript, runs, events = PostgresTranscript(pool), PostgresRuns(pool, settings.lease_s), PostgresEvents(pool)
    inner: FileBackend = LocalFiles(settings.data_dir / "files") if settings.files_backend == "local" else MemoryFiles()
    files = ResultFiles(inner, transcript)
    tools = Registry(file_tools(files, SystemClock()))
    limits = Limits(settings.tool_timeout_s, settings.max_model_calls_per_turn, settings.max_parallel_tools)
    bench = Workbench(provider, tools, STACK, transcript, SystemClock(), ids, limits)

    def profile_of(session: Session, model: str) -> ModelProfile:
        return effective_profile(settings.profile, session, model)

    sessions = Sessions(
        PostgresSessions(pool), transcript, files, ids, estimator, settings.profile, (BASE,), tools.definitions
    )
    turns = Turns(bench, runs, events, estimator, profile_of, _owner(), settings.lease_s)
    return Services(sessions, turns, transcript, events, files, pool, settings.profiles(), settings.model_name)


def make_provider(settings: Settings) -> Provider:
    if settings.provider_name == "anthropic" and settings.anthropic_api_key is not None:
        from app.providers.anthropic.provider import AnthropicProvider

        key = settings.anthropic_api_key.get_secret_value()
        return AnthropicProvider(key, settings.anthropic_base_url, SystemClock())
    from app.providers.offline.provider import OfflineProvider

    return OfflineProvider()


async def _warm_up(provider: Provider) -> None:
    """A provider's library may take seconds to import: after the port answers, before the first turn."""
    warm_up = getattr(provider, "warm_up", None)
    if warm_up is not None:
        await warm_up()


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{RandomIds().new('own')}"


class _Server(uvicorn.Server):
    """Ends the streams when it is told to stop: each would hold the shutdown up otherwise."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        services: Services = self._app.state.services
        services.turns.end_streams()


def run(settings: Settings, database_url: str) -> None:
    """Serves until SIGTERM or SIGINT."""
    app = create_app(settings, database_url)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
        server_header=False,
    )
    _announce(settings)
    _Server(config, app).run()


def _announce(settings: Settings) -> None:
    place = "" if settings.provider_name == "anthropic" else " (no ANTHROPIC_API_KEY: a small offline agent answers)"
    log.info("provider %s, model %s%s", settings.provider_name, settings.model_name, place)
    log.info("serving on http://%s:%s, API page at /docs", settings.host, settings.port)
