"""The gauges of a process, read from another thread, and what happens when its event loop does not answer."""

import asyncio
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client.parser import text_string_to_metric_families

from app import telemetry
from app.instruments import vitals
from app.instruments.page import PrometheusPage
from app.instruments.vitals import Pulse, Vitals


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[PrometheusPage]:
    page = PrometheusPage()
    provider = MeterProvider([page.reader], shutdown_on_exit=False)
    monkeypatch.setattr(telemetry, "meter", provider.get_meter("test"))
    yield page
    provider.shutdown()


async def told(page: PrometheusPage) -> dict[tuple[str, str], float]:
    text, _ = await asyncio.to_thread(page.render, "")
    families = text_string_to_metric_families(text.decode())
    samples = (sample for family in families for sample in family.samples)
    return {(sample.name, sample.labels.get("state", "")): sample.value for sample in samples}


async def look() -> Vitals:
    return Vitals(runs_live=1, runs_queued=2, streams_open=3, connections_used=4, connections_idle=5)


async def test_one_look_at_the_loop_tells_everything(page: PrometheusPage):
    pulse = Pulse()
    pulse.watch(look)
    found = await told(page)
    assert found["hango_runs_live", ""] == 1
    assert found["hango_runs_queued", ""] == 2
    assert found["hango_streams_open", ""] == 3
    assert (found["hango_db_connections", "used"], found["hango_db_connections", "idle"]) == (4, 5)
    assert found["hango_event_loop_delay_seconds", ""] > 0


async def test_a_database_that_does_not_answer_leaves_its_figure_out(page: PrometheusPage):
    async def blind() -> Vitals:
        return Vitals(1, None, 3, 4, 5)

    Pulse().watch(blind)
    found = await told(page)
    assert ("hango_runs_queued", "") not in found
    assert found["hango_streams_open", ""] == 3


async def test_a_loop_that_does_not_answer_is_told_as_late_and_nothing_old_is_told(
    page: PrometheusPage, monkeypatch: pytest.MonkeyPatch
):
    pulse = Pulse()
    pulse.watch(look)
    await told(page)
    monkeypatch.setattr(vitals, "PATIENCE_S", 0)
    never = asyncio.Event()

    async def stuck() -> Vitals:
        await never.wait()
        return await look()

    pulse.watch(stuck)
    found = await told(page)
    assert ("hango_event_loop_delay_seconds", "") in found
    assert ("hango_runs_live", "") not in found


async def test_a_server_that_has_ended_is_not_asked(page: PrometheusPage):
    pulse = Pulse()
    pulse.watch(look)
    pulse.unwatch()
    found = await told(page)
    assert [name for name, _ in found if name.startswith("hango")] == []
    assert found["process_cpu_time_seconds_total", ""] > 0
