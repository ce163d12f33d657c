"""A real Prometheus scrapes a real server, and its figures are those that the API tells."""

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from tests.dashboard import QUERIES, config
from tests.journeys.house import House, client
from tests.journeys.long_sessions import lines
from tests.serving import process

BINARY = shutil.which("prometheus")
KEY = "a-key-of-prometheus-alone"

pytestmark = [pytest.mark.soak, pytest.mark.skipif(BINARY is None, reason="prometheus is not installed")]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@asynccontextmanager
async def prometheus(folder: Path, target: str) -> AsyncIterator[httpx.AsyncClient]:
    """With the shipped configuration but for address, key and pace."""
    folder.mkdir()
    (folder / "key").write_text(KEY)
    shipped = config("prometheus.yml")
    [job] = shipped["scrape_configs"]
    job["authorization"]["credentials_file"] = str(folder / "key")
    job["static_configs"] = [{"targets": [target]}]
    shipped["global"]["scrape_interval"] = "1s"
    (folder / "prometheus.yml").write_text(yaml.safe_dump(shipped))
    address = f"127.0.0.1:{free_port()}"
    child = await asyncio.create_subprocess_exec(
        BINARY, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={address}", stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with client(f"http://{address}") as http:
            yield http
    finally:
        child.terminate()
        await child.wait()


async def value(http: httpx.AsyncClient, query: str) -> float | None:
    """The sum over all series; None while there is none, or nobody answers yet."""
    try:
        answer = await http.get("/api/v1/query", params={"query": query})
    except httpx.ConnectError:
        return None
    result = answer.json().get("data", {}).get("result", [])
    return sum(float(series["value"][1]) for series in result) if result else None


async def becomes(http: httpx.AsyncClient, query: str, wanted: float) -> None:
    """Asks until a scrape has brought it."""
    found = None
    try:
        async with asyncio.timeout(30):
            while (found := await value(http, query)) != wanted:
                await asyncio.sleep(0)
    except TimeoutError:
        raise AssertionError(f"{query}: {found} is not {wanted}") from None


async def test_prometheus_counts_what_the_api_tells(database_url: str, tmp_path: Path):
    environment = {
        "HANGO_DATABASE_URL": database_url,
        "HANGO_DATA_DIR": str(tmp_path / "data"),
        "HANGO_API_KEYS": f"acme:a-key-of-some-length,metrics:{KEY}",
    }
    bearer = {"Authorization": "Bearer a-key-of-some-length"}
    async with (
        process(environment, "app.cli", "serve") as server,
        client(server.url, headers=bearer) as http,
        prometheus(tmp_path / "prometheus", server.url.removeprefix("http://")) as metrics,
    ):
        house = House(http)
        session = await house.open(context={"context_window_tokens": 12_000})
        for number in range(4):
            await house.turn(session, f"write f{number}.txt: {lines(number, 6000)}")
            await house.turn(session, f"read f{number}.txt")
        await house.http.post(f"{session}/compact", json={})
        usage, gauge = (await house.get(f"{session}/usage"))["by_purpose"], await house.get(f"{session}/context")
        events = await house.events(session)
        for purpose, tokens in usage.items():
            labels = f'hango_call_purpose="{purpose}",gen_ai_token_type='
            read = tokens["input"] + tokens["cache_read"] + tokens["cache_write"]
            await becomes(metrics, f'gen_ai_client_token_usage_sum{{{labels}"input"}}', read)
            await becomes(metrics, f'gen_ai_client_token_usage_sum{{{labels}"output"}}', tokens["output"])
        evicted = sum(e["data"]["messages_evicted"] for e in events if e["type"] == "context.compacted")
        ended = sum(e["type"].startswith("turn.completed") for e in events)
        await becomes(metrics, "hango_context_compactions_total", gauge["compactions"])
        await becomes(metrics, "hango_context_epochs_total", gauge["epochs"])
        await becomes(metrics, "hango_context_evicted_messages_sum", evicted)
        await becomes(metrics, 'hango_turns_total{hango_turn_status="completed"}', ended)
        assert gauge["compactions"] >= 1
        for query in QUERIES:
            answer = await metrics.get("/api/v1/query", params={"query": query.replace("$__rate_interval", "1m")})
            assert answer.json()["status"] == "success", query
