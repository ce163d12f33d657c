"""Each line of the log tells which session, run and trace it belongs to, and none tells what was said."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from app.conversation.tools import ToolRequest
from app.logs import OURS, make_handler, set_levels
from tests.double.control import Double
from tests.double.steps import Hold, HttpError, Reply, call, say
from tests.journeys.house import Build
from tests.journeys.tools import Answering

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACED = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
SECRET = "the walrus sleeps at noon"


class Log:
    def __init__(self) -> None:
        self.stream = io.StringIO()

    def clear(self) -> None:
        self.stream.truncate(self.stream.seek(0))

    def entries(self, logger: str = "") -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [entry for entry in found if entry["logger"].startswith(logger)]


@pytest.fixture
def log() -> Iterator[Log]:
    """All that is logged in this process, down to debug, as a server writes it."""
    log, loggers = Log(), [logging.getLogger(name) for name in ("", *OURS)]
    handler, levels = make_handler("json", log.stream), [logger.level for logger in loggers]
    loggers[0].addHandler(handler)
    set_levels("debug")
    yield log
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    loggers[0].removeHandler(handler)


def raises(request: ToolRequest) -> str:
    raise RuntimeError("a fault of the tool")


async def test_every_line_of_a_turn_names_its_session_run_and_trace(build: Build, double: Double, log: Log):
    house = await build(double=double, tools=[Answering("faulty", raises)])
    double.script(HttpError(529), Reply([call("toolu_1", "faulty", {"path": SECRET})]), say(SECRET))
    session = await house.open()
    for loop in house.services.turns._loops:
        loop.cancel()  # a run that the sweep happens to start is in no trace
    log.clear()
    sent = {"json": {"content": SECRET}, "headers": TRACED}
    run = (await house.http.post(f"{session}/turns?wait=true", **sent)).json()
    entries = log.entries("app.")
    assert {"a tool raised", "model call failed (provider_overloaded), next attempt in 0.5 s"} <= {
        entry["message"] for entry in entries
    }
    of_the_turn = {"session": run["session_id"], "run": run["id"], "trace_id": TRACE}
    assert [entry for entry in entries if not of_the_turn.items() <= entry.items()] == []
    [raised] = [entry for entry in entries if "exception" in entry]
    assert raised["exception"].endswith('raise RuntimeError("a fault of the tool")\nRuntimeError')
    assert SECRET not in log.stream.getvalue()


async def test_a_run_taken_up_by_the_sweep_has_its_own_session_and_no_request(build: Build, double: Double, log: Log):
    hold = Hold()
    double.script(say("one", at={0: hold}), HttpError(529), say("two"))
    house = await build(double=double)
    session = await house.open()
    await house.post(session, "first")
    await hold.reached.wait()
    queued = (await house.http.post(f"{session}/turns?queue=true", json={"content": "x"}, headers=TRACED)).json()
    hold.release()
    async with house.follow(session, run_id=queued["id"]) as reader:
        await reader.until("turn.completed")
    [failed] = [entry for entry in log.entries("app.") if entry["message"].startswith("model call failed")]
    assert (failed["session"], failed["run"]) == (queued["session_id"], queued["id"])
    assert not {"path", "trace_id"} & failed.keys() or failed["trace_id"] != TRACE


async def test_a_request_that_fails_names_its_path_session_and_trace(
    build: Build, log: Log, monkeypatch: pytest.MonkeyPatch
):
    house = await build()
    session = await house.open()

    async def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(house.services.transcript, "stretch", broken)
    log.clear()
    answer = await house.http.get(f"{session}/messages", headers=TRACED)
    assert answer.status_code == 500
    assert {entry["logger"] for entry in log.entries()} == {"app.api.problems", "uvicorn.error"}
    for entry in log.entries():
        assert (entry["path"], entry["session"]) == (f"{session}/messages", session.rpartition("/")[2])
    # The web server writes its own line when the request's span has ended.
    assert [entry["trace_id"] for entry in log.entries("app.")] == [TRACE]
