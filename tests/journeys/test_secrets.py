"""Keys, passwords and what sessions say stay where they belong: no log, span, problem or start-up error tells them."""

import asyncio
import io
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from app import telemetry
from app.cli import main
from app.logs import make_handler
from tests.double.control import Double
from tests.double.steps import HttpError, Reply, call, say
from tests.journeys.house import MODEL, Build, House, client
from tests.journeys.tools import Answering
from tests.serving import process, run

API_KEY, WRONG_KEY, PROVIDER_KEY = "canary-of-the-client-1", "canary-of-a-stranger", "sk-canary-of-the-provider"
SAID, ANSWERED, ARGUMENT, NAME = "canary that was said", "canary answered", "canary of an argument", "canary-name"
SECRETS = (API_KEY, WRONG_KEY, PROVIDER_KEY)
CONTENT = (SAID, ANSWERED, ARGUMENT, NAME)


def told(text: str, *canaries: str) -> list[str]:
    return [canary for canary in canaries if canary in text]


def refusal(echo: str) -> HttpError:
    """As a provider that repeats all it was sent, its own key too."""
    return HttpError(400, f"messages.0.content.0: '{echo}' with {PROVIDER_KEY} is not allowed")


async def refused(house: House, session: str) -> list[httpx.Response]:
    """Requests that fail at every door, each with something that must not come back."""
    stranger = {"Authorization": f"Bearer {WRONG_KEY}"}
    return [
        await house.http.get(session, headers=stranger),
        await house.http.post("/v1/sessions", json={"model": f"{SAID} {SAID}"}),
        await house.http.post("/v1/sessions", json={"messages": [{"role": SAID, "content": SAID}]}),
        await house.http.post("/v1/sessions", content=f'{{"{SAID}'.encode()),
        await house.http.post(f"{session}/turns", json={"content": [{"type": SAID}]}),
        await house.http.post(f"{session}/turns", json={"content": "x", "max_tokens": SAID}),
        await house.http.get(f"{session}/messages", params={"after": SAID}),
        await house.http.get(f"{session}/files/workspace/{NAME}/../../{ANSWERED}"),
        await house.http.get(f"{session}/turns/{NAME}"),
    ]


async def test_a_server_that_logs_all_it_can_tells_no_secret(database_url: str, double: Double, tmp_path: Path):
    write = call("toolu_1", "write_file", {"path": f"/workspace/{NAME}.txt", "content": ARGUMENT})
    search = call("toolu_2", "search_files", {"pattern": f"({SAID}"})
    double.script(Reply([write, search]), say(ANSWERED), refusal(SAID), refusal(SAID))
    environment = {
        "HANGO_DATABASE_URL": database_url, "HANGO_DATA_DIR": str(tmp_path), "HANGO_LOG_LEVEL": "debug",
        "HANGO_MODEL": MODEL, "HANGO_API_KEYS": f"red:{API_KEY}", "ANTHROPIC_API_KEY": PROVIDER_KEY,
        "ANTHROPIC_BASE_URL": double.base_url,
    }  # fmt: skip
    headers = {"Authorization": f"Bearer {API_KEY}"}
    async with process(environment, "app.cli", "serve") as server, client(server.url, headers=headers) as http:
        house = House(http)
        session = await house.open(system=SAID, metadata={"note": SAID})
        assert (await house.turn(session, SAID))["text"] == ANSWERED
        failed = await house.turn(session, SAID)
        assert (failed["status"], failed["error"]["code"]) == ("failed", "provider_rejected")
        stored = [await house.messages(session), await house.events(session), failed, await house.get(session)]
        for answer in await refused(house, session):
            assert answer.status_code >= 400
            assert told(answer.text, *SECRETS, *CONTENT) == [], answer.request.url
        await server.terminate()
        await server.reading
    assert "the provider refused a request" in server.log
    assert told(server.log, *SECRETS, *CONTENT) == []
    assert told(str(stored), *SECRETS) == []
    assert told(str(stored), *CONTENT) == [*CONTENT]  # to its owner


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter, tracing = InMemorySpanExporter(), TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "tracer", tracing.get_tracer("test"))
    return exporter


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What our own loggers write, at the lowest level."""
    stream, ours = io.StringIO(), logging.getLogger("app")
    handler, before = make_handler("text", stream), ours.level
    ours.addHandler(handler)
    ours.setLevel(logging.DEBUG)
    yield stream
    ours.removeHandler(handler)
    ours.setLevel(before)


def crash(request: object) -> str:
    raise ValueError(f"cannot read {ARGUMENT!r}: {ANSWERED}")


async def test_a_tool_that_crashes_over_its_input_tells_neither(
    build: Build, double: Double, spans: InMemorySpanExporter, log: io.StringIO
):
    double.script(Reply([call("toolu_1", "probe", {"path": ARGUMENT})]), say(ANSWERED), refusal(SAID), refusal(SAID))
    house = await build(double=double, tools=[Answering("probe", crash)])
    session = await house.open()
    assert (await house.turn(session, SAID))["status"] == "completed"
    assert (await house.turn(session, SAID))["status"] == "failed"
    results = [block for row in await house.messages(session) for block in row["content"] if "tool_use_id" in block]
    assert [block["content"] for block in results] == ["probe failed: ValueError."]
    async with asyncio.timeout(5):
        while sum(span.name == telemetry.SPAN_TURN for span in spans.get_finished_spans()) < 2:
            await asyncio.sleep(0)
    traced = "".join(span.to_json() for span in spans.get_finished_spans())
    assert "a tool raised" in log.getvalue()
    assert "ValueError" in log.getvalue()
    assert told(log.getvalue(), *CONTENT) == []
    assert told(traced, *CONTENT) == []


PASSWORD = "canary-of-the-database"
STARTS = [
    {"HANGO_DATABASE_URL": f"postgresql://hango:{PASSWORD}@127.0.0.1:1/hango"},
    {"HANGO_DATABASE_URL": f"postgresql://hango:{PASSWORD}@127.0.0.1:port/hango"},
    {"HANGO_DATABASE_URL": f"postgresql://hango:{PASSWORD}@127.0.0.1:1/hango?sslmode=wrong"},
    {"HANGO_DATABASE_URL": f"postgresql://hango:pass@{PASSWORD}:word@127.0.0.1:1/hango"},
    {"HANGO_DATABASE_URL": f"mysql://hango:{PASSWORD}@127.0.0.1/hango"},
    {"HANGO_API_KEYS": PASSWORD},
    {"HANGO_API_KEYS": f"{PASSWORD} x:{PASSWORD}"},
    {"HANGO_API_KEYS": f"red:{PASSWORD},blue:{PASSWORD}"},
    {"HANGO_PORT": PASSWORD},
    {"HANGO_MODEL_PROFILES": f'{{"{PASSWORD}'},
    {"HANGO_PROVIDER": "anthropic", "HANGO_MODEL": f"{PASSWORD} x", "ANTHROPIC_BASE_URL": f"http://a:{PASSWORD}@127.0.0.1:1"},
    {"HANGO_PROVIDER": "openai", "OPENAI_API_KEY": PASSWORD, "OPENAI_BASE_URL": f"http://a:{PASSWORD}@127.0.0.1:1"},
]  # fmt: skip


@pytest.mark.parametrize("bad", STARTS, ids=range(len(STARTS)))
def test_settings_that_are_bad_are_told_without_their_secrets(
    bad: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for name, value in {"HANGO_DATA_DIR": str(tmp_path / "data"), **bad}.items():
        monkeypatch.setenv(name, value)
    assert main(["doctor"]) == 2
    out, err = capsys.readouterr()
    assert "hango: " in err
    assert told(out + err, PASSWORD) == []


async def test_a_server_without_its_database_does_not_start_and_tells_no_password(tmp_path: Path):
    status, out, err = await run({"HANGO_DATA_DIR": str(tmp_path), **STARTS[0]}, "serve")
    assert status == 2
    assert told(out + err, PASSWORD, "Traceback") == []
