"""A whole server per test: a database of its own, a data folder of its own, a double of the provider when asked."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from app.instruments.page import PrometheusPage
from app.instruments.start import Instruments, count_into
from app.instruments.vitals import Pulse
from tests.double.control import Double
from tests.double.server import run_double
from tests.double_openai.run import run_openai_double
from tests.journeys.house import Build, Counted, House, open_house


@pytest.fixture
async def build(database_url: str, tmp_path: Path) -> AsyncIterator[Build]:
    """`await build(provider=..., tools=..., ping_s=..., **settings)` starts a server and gives its client."""
    async with AsyncExitStack() as stack:

        async def make(**options) -> House:
            return await stack.enter_async_context(open_house(database_url, tmp_path, **options))

        yield make


@pytest.fixture(scope="session")
def counted() -> Counted:
    """For the whole process: a provider can be set only once."""
    reader, page = InMemoryMetricReader(), PrometheusPage()
    count_into([reader, page.reader])
    return Counted(reader, Instruments(page, Pulse()))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("both_providers"):
        metafunc.parametrize("double", ["anthropic", "openai"], indirect=True)


@pytest.fixture
async def double(request: pytest.FixtureRequest) -> AsyncIterator[Double]:
    """Of the Messages API; a test marked `both_providers` runs over the double of Chat Completions too."""
    run = run_openai_double if getattr(request, "param", "anthropic") == "openai" else run_double
    async with run() as running:
        yield running


@pytest.fixture
async def house(build: Build, double: Double) -> House:
    """A server whose model is the double."""
    return await build(double=double)
