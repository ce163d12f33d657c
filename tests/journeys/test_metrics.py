"""The page that Prometheus reads, beside what the API tells."""

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.double.control import Double
from tests.double.steps import Hold, HttpError, Reply, call, say
from tests.journeys.house import Build, Counted, House

OVERFLOW = HttpError(400, "prompt is too long: 250000 tokens > 200000 maximum")


class Page:
    def __init__(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.text
        self.text = answer.text
        self.samples = [sample for family in text_string_to_metric_families(self.text) for sample in family.samples]

    def __getitem__(self, name: str) -> float:
        return self.value(name)

    def value(self, name: str, **labels: str) -> float:
        """The sum of all series that have these labels; 0 without one."""
        found = (sample for sample in self.samples if sample.name == name)
        return sum(sample.value for sample in found if labels.items() <= sample.labels.items())


async def scrape(house: House) -> Page:
    return Page(await house.http.get("/metrics"))


@pytest.fixture
async def metered(build: Build, double: Double, counted: Counted) -> House:
    return await build(double=double, instruments=counted.instruments)


async def test_the_page_counts_what_the_api_tells(metered: House, double: Double):
    before = await scrape(metered)
    usage = {"input_tokens": 27, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 50, "output_tokens": 8}
    double.script(Reply([call("t1", "list_files", {"path": "/"})], usage=usage), OVERFLOW, say("done", usage=usage))
    session = await metered.open(model="claude-haiku-4-5")
    await metered.turn(session)
    page, told = await scrape(metered), await metered.get(f"{session}/usage")

    def tokens(kind: str) -> float:
        labels = {"gen_ai_request_model": "claude-haiku-4-5", "gen_ai_token_type": kind}
        return page.value("gen_ai_client_token_usage_sum", **labels)

    purposes = told["by_purpose"].values()
    assert tokens("input") == sum(each["input"] + each["cache_read"] + each["cache_write"] for each in purposes)
    assert tokens("output") == sum(each["output"] for each in purposes)
    model = {"gen_ai_request_model": "claude-haiku-4-5"}
    reads, calls = (page.value(f"hango_cache_read_ratio_{part}", **model) for part in ("sum", "count"))
    assert round(reads / calls, 4) == told["cache_read_ratio"]
    for name, label in (
        ("hango_context_overflow_retries_total", {"hango_overflow_step": "overflow"}),
        ("hango_turns_total", {"hango_turn_status": "completed"}),
    ):
        assert page.value(name, **label) - before.value(name, **label) == 1


async def test_what_goes_on_shows_while_it_goes_on(metered: House, double: Double):
    hold = Hold()
    double.script(say("one", at={0: hold}), say("two"))
    session = await metered.open()
    async with metered.stream(session) as reader:
        await hold.reached.wait()
        await metered.post(session, queue=True)
        page = await scrape(metered)
        assert (page["hango_runs_live"], page["hango_runs_queued"], page["hango_streams_open"]) == (1, 1, 1)
        hold.release()
        await reader.rest()
    async with metered.follow(session) as reader:
        await reader.until("turn.completed")
        await reader.until("turn.completed")
    await metered.all_requests_ended()
    page = await scrape(metered)
    assert (page["hango_runs_queued"], page["hango_streams_open"]) == (0, 0)
    assert 0 < page["hango_event_loop_delay_seconds"] < 2
    assert page["hango_db_connections"] >= 1
    assert page["process_memory_usage_bytes"] > 10_000_000
    assert page["process_cpu_time_seconds_total"] > 0


async def test_no_series_is_made_of_what_a_client_makes_up(metered: House):
    for path in ("/v1/sessions/ses_madeup", "/madeup/path", "/v1/sessions?after=madeup"):
        await metered.http.get(path, headers={"Host": "localhost", "User-Agent": "madeup"})
    await metered.http.request("MADEUP", "/v1/sessions")
    page = await scrape(metered)
    assert "madeup" not in page.text.lower()
    told = {"http_method": "GET", "http_target": "/v1/sessions/{session_id}", "http_status_code": "404"}
    assert page.value("http_server_duration_milliseconds_count", **told) >= 1
    assert not [sample for sample in page.samples if sample.labels.get("http_target") == "/metrics"]


async def test_the_page_has_the_form_that_is_asked_for(metered: House):
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    answer = await metered.http.get("/metrics", headers=accept)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


async def test_where_keys_are_set_the_page_needs_one(build: Build, counted: Counted):
    house = await build(api_keys="acme:a-key-that-is-long-enough", instruments=counted.instruments)
    assert (await house.http.get("/metrics")).status_code == 401
    assert (
        await house.http.get("/metrics", headers={"Authorization": "Bearer a-key-that-is-long-enough"})
    ).status_code == 200


async def test_a_server_that_counts_nothing_has_no_page(build: Build):
    answer = await (await build()).http.get("/metrics")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
