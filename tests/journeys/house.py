"""A client's view of one running server, with short words for what clients do."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from app.api.requests import Services
from app.config import Settings
from app.instruments.start import Instruments
from app.main import Server, create_app
from app.ports import Provider, Tool
from app.providers.anthropic.provider import AnthropicProvider
from app.providers.openai.provider import OpenAIProvider
from tests.double.control import Double
from tests.journeys.sse import Reader
from tests.rooms.providers.anthropic_room import KEY, StillClock
from tests.serving import served

STREAM = {"Accept": "text/event-stream"}
MODEL = "claude-sonnet-4-6"


@dataclass(frozen=True)
class House:
    """`attached`: nobody has posted a turn with a stream that does not read it yet; the double waits for it."""

    http: httpx.AsyncClient
    app: FastAPI | None = None
    server: Server | None = None
    attached: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return str(self.http.base_url)

    @property
    def services(self) -> Services:
        """What the server in this process works with."""
        assert self.app is not None
        services: Services = self.app.state.services
        return services

    @property
    def connections(self) -> Collection[object]:
        """Those that are open at the server."""
        assert self.server is not None
        return self.server.server_state.connections

    async def all_requests_ended(self) -> None:
        """Streams too: the server has noticed that their readers are gone."""
        assert self.server is not None
        async with asyncio.timeout(5):
            while self.server.server_state.tasks:
                await asyncio.sleep(0)

    async def open(self, **body: Any) -> str:
        """The path of a new session."""
        answer = await self.http.post("/v1/sessions", json=body)
        assert answer.status_code == 201, answer.text
        return f"/v1/sessions/{answer.json()['id']}"

    async def get(self, path: str, **params: Any) -> Any:
        answer = await self.http.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def turn(self, session: str, content: Any = "go", **body: Any) -> dict[str, Any]:
        """The finished run."""
        answer = await self.post(session, content, wait=True, **body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(
        self, session: str, content: Any = "go", *, wait: bool = False, queue: bool = False, key: str = "", **body: Any
    ) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        params = {name: "true" for name, wanted in (("wait", wait), ("queue", queue)) if wanted}
        return await self.http.post(
            f"{session}/turns", json={"content": content, **body}, params=params, headers=headers
        )

    @asynccontextmanager
    async def stream(self, session: str, content: Any = "go", **body: Any) -> AsyncIterator[Reader]:
        """Posts a turn and reads its events; every preview is among them."""
        sent = {"content": content, **body}
        self.attached.clear()
        async with self.http.stream("POST", f"{session}/turns", json=sent, headers=STREAM) as response:
            reader = await Reader.of(response)
            await reader.until("message.user")
            self.attached.set()
            yield reader

    @asynccontextmanager
    async def follow(self, session: str, last_event_id: int | None = None, **params: Any) -> AsyncIterator[Reader]:
        headers = STREAM if last_event_id is None else {**STREAM, "Last-Event-ID": str(last_event_id)}
        async with self.http.stream("GET", f"{session}/events", headers=headers, params=params) as response:
            yield await Reader.of(response)

    async def events(self, session: str, **params: Any) -> list[dict[str, Any]]:
        """The stored events."""
        return list((await self.get(f"{session}/events", limit=1000, **params))["data"])

    async def messages(self, session: str) -> list[dict[str, Any]]:
        return list((await self.get(f"{session}/messages", limit=1000))["data"])


@dataclass(frozen=True)
class Counted:
    """What the test process counts, for all its tests together: as an exporter gets it, and as a server shows it."""

    reader: InMemoryMetricReader
    instruments: Instruments


Build = Callable[..., Awaitable[House]]


@asynccontextmanager
async def open_house(
    database_url: str,
    folder: Path,
    *,
    provider: Provider | None = None,
    double: Double | None = None,
    tools: Sequence[Tool] | None = None,
    ping_s: float = 10,
    instruments: Instruments | None = None,
    **changes: Any,
) -> AsyncIterator[House]:
    """`double`: the model is it, over its adapter with a clock that does not sleep."""
    values = {"data_dir": folder / "data", "database_url": database_url, "provider": "offline"}
    attached = asyncio.Event()
    attached.set()
    if double is not None:
        double.settings = replace(double.settings, pace=attached.wait)
        provider = provider_of(double)
        values["model"] = MODEL
    settings = Settings(**{**values, **changes})
    app = create_app(settings, database_url, provider, tools, ping_s, instruments=instruments)
    async with served(app) as (url, server), client(url) as http:
        yield House(http, app, server, attached)


def provider_of(double: Double) -> Provider:
    if double.api == "openai":
        return OpenAIProvider(KEY, f"{double.base_url}/v1", StillClock())
    return AnthropicProvider(KEY, double.base_url, StillClock())


@asynccontextmanager
async def client(url: str, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    # No certificates are needed on loopback, and loading them takes 0.1 s.
    async with httpx.AsyncClient(base_url=url, timeout=20, verify=False, **options) as http:
        yield http
