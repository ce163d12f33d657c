"""The official SDK as the client of a double on a real loopback socket."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

from tests.double.control import Double
from tests.double.server import run_double
from tests.rooms.double.words import Client


@pytest.fixture
async def double() -> AsyncIterator[Double]:
    async with run_double() as running:
        yield running


@pytest.fixture(scope="session")
async def transport() -> AsyncIterator[DefaultAsyncHttpxClient]:
    """One for all tests: making its TLS context costs 0.1 s."""
    async with DefaultAsyncHttpxClient(timeout=20) as shared:
        yield shared


@pytest.fixture
def connect(transport: DefaultAsyncHttpxClient) -> Client:
    """`connect(double)` makes a client without retries."""

    def make(double: Double, **options: Any) -> AsyncAnthropic:
        given = {"max_retries": 0, "timeout": 20, "api_key": "test", "http_client": transport, **options}
        return AsyncAnthropic(base_url=double.base_url, **given)

    return make
