"""What operators and sessions may choose about the window, and that it acts."""

import logging

import pytest

from tests.double.control import Double
from tests.double.steps import say
from tests.double.transcript import extract
from tests.journeys.house import MODEL, Build, House
from tests.journeys.long_sessions import WINDOW, offload_file, open_long, prose, summarizing, told

SMALL = "claude-haiku-4-5"


async def next_turn(house: House, double: Double, session: str) -> list[dict]:
    """The context events of one more turn."""
    summarizing(double)
    double.script(say("ok"), purpose="main")
    run = await house.turn(session)
    assert run["status"] == "completed"
    log = await house.events(session, run_id=run["id"])
    return told(log, "context.compacted")


@pytest.mark.parametrize(
    ("context", "compacts"),
    [
        ({}, False),
        ({"trigger_frac": 0.5}, True),
        ({"trigger_frac": 0.5, "compaction": False}, False),
        ({"context_window_tokens": 18_000}, True),
        ({"context_window_tokens": 18_000, "max_input_tokens": 500_000}, True),
        ({"max_input_tokens": 18_000, "context_window_tokens": 18_000}, True),
    ],
    ids=lambda value: str(value),
)
async def test_a_sessions_own_context_decides(house: House, double: Double, context: dict, compacts: bool):
    session = await open_long(house, 16, make=prose, **context)
    made = await next_turn(house, double, session)
    assert [data["reason"] for data in made] == ["threshold"] * compacts
    gauge = await house.get(f"{session}/context")
    assert gauge["context_window_tokens"] == context.get("context_window_tokens", WINDOW)
    assert gauge["trigger_tokens"] == int(gauge["context_window_tokens"] * context.get("trigger_frac", 0.85))
    assert gauge["compactions"] == compacts


async def test_less_is_kept_when_a_session_says_so(house: House, double: Double):
    kept = []
    for frac in (0.1, 0.4):
        session = await open_long(house, 28, make=prose, keep_frac=frac)
        await next_turn(house, double, session)
        [record] = (await house.get(f"{session}/context/records"))["data"]
        kept.append(record["kept_from_seq"])
    assert kept[0] > kept[1]


async def test_an_earlier_mark_elides_without_a_model_call(house: House, double: Double):
    session = await open_long(house, 20, micro_frac=0.5)
    made = await next_turn(house, double, session)
    assert [data["tier"] for data in made] == ["micro_compaction"]
    assert double.of("summarize") == []
    assert (await house.get(f"{session}/context"))["warm_tokens"] == WINDOW // 2


async def test_the_summarizer_is_whom_the_session_names_then_the_operator_then_the_profile(
    build: Build, double: Double
):
    named = []
    for settings, context in (
        ({}, {}),
        ({"summarizer_model": "claude-opus-4-5"}, {}),
        ({"summarizer_model": "claude-opus-4-5"}, {"summarizer_model": MODEL}),
    ):
        house = await build(double=double, **settings)
        session = await open_long(house, 28, make=prose, **context)
        await next_turn(house, double, session)
        named.append(double.of("summarize")[-1].body["model"])
        [record] = (await house.get(f"{session}/context/records"))["data"]
        assert record["model"] == named[-1]
    assert named == [SMALL, "claude-opus-4-5", MODEL]


async def test_with_compaction_off_no_tier_acts_by_itself(build: Build, double: Double):
    house = await build(double=double, compaction=False)
    session = await open_long(house, 28)
    assert await next_turn(house, double, session) == []
    assert len(double.of("main")[-1].body["messages"]) == 2 * 28 + 3
    assert double.of("count") == []
    assert (await house.get(f"{session}/context"))["level"] == "hot"


async def test_a_session_may_turn_on_what_the_operator_turned_off(build: Build, double: Double):
    house = await build(double=double, compaction=False)
    session = await open_long(house, 28, make=prose, compaction=True)
    assert len(await next_turn(house, double, session)) == 1


async def test_the_operators_window_and_marks_are_for_all_sessions(build: Build, double: Double):
    house = await build(double=double, context_window_tokens=24_000, context_trigger_frac=0.6)
    session = await house.open(messages=prose(16))
    assert len(await next_turn(house, double, session)) == 1
    gauge = await house.get(f"{session}/context")
    assert (gauge["context_window_tokens"], gauge["trigger_tokens"]) == (24_000, 14_400)


async def test_a_model_that_only_the_operators_table_names_is_a_known_one(build: Build, double: Double):
    table = {"claude-sonnet-5-5": {"max_input_tokens": 40_000, "context_window_tokens": 24_000}}
    house = await build(double=double, model_profiles=table)
    for model in ("claude-sonnet-5-5", "claude-opus-5"):
        session = await house.open(model=model)
        double.script(say("ok"))
        await house.turn(session)
        assert told(await house.events(session), "context.warning") == []
        gauge = await house.get(f"{session}/context")
        assert gauge["context_window_tokens"] == (24_000 if model == "claude-sonnet-5-5" else 200_000)
    asked = [exchange.path for exchange in double.requests if exchange.path.startswith("/v1/models/")]
    assert asked == ["/v1/models/claude-opus-5"]


async def test_without_tables_tiktoken_falls_back_to_the_heuristic(
    build: Build, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def missing() -> None:
        raise OSError("no network")

    monkeypatch.setattr("app.providers.tiktoken_estimator.load_estimator.__defaults__", (missing, 10.0))
    with caplog.at_level(logging.WARNING):
        house = await build(estimator="tiktoken")
    assert [record.message for record in caplog.records] == ["tiktoken is not usable: estimating by the heuristic"]
    plain = await build()
    session = await house.open(system="Be exact.")
    assert await house.get(f"{session}/context") == await plain.get(f"{session}/context")


async def test_with_tables_tiktoken_estimates(build: Build, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.providers.tiktoken_estimator.load_estimator.__defaults__", (lambda: len, 10.0))
    house, plain = await build(estimator="tiktoken"), await build()
    session = await house.open(system="Be exact and say where each number comes from.")
    counted, guessed = [(await one.get(f"{session}/context"))["breakdown"]["system"] for one in (house, plain)]
    assert counted > 2 * guessed


@pytest.mark.parametrize("where", ["create", "patch", "turn"])
async def test_thinking_that_leaves_too_little_to_the_input_is_refused(house: House, where: str):
    thinking = {"type": "enabled", "budget_tokens": 31_000}
    window = {"context_window_tokens": 60_000} if where == "create" else {}
    answer = await house.http.post("/v1/sessions", json={"thinking": thinking, "max_tokens": 32_000, "context": window})
    if where == "create":
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "thinking.budget_tokens")
        return
    session = f"/v1/sessions/{answer.json()['id']}"
    if where == "patch":
        answer = await house.http.patch(session, json={"model": "offline"})
    else:
        answer = await house.post(session, model="offline")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "model")
    assert (await house.get(session))["model"] == MODEL


async def test_a_small_summarizer_reads_the_evicted_part_in_pieces(build: Build, double: Double):
    house = await build(double=double, model_profiles={SMALL: {"max_input_tokens": 16_000}})
    session = await open_long(house, 28, make=prose)
    double.script(*[extract] * 5, purpose="summarize")
    double.script(say("ok"), purpose="main")
    assert (await house.turn(session))["status"] == "completed"
    calls = double.of("summarize")
    assert 1 < len(calls) <= 5
    assert all(call.input_tokens + call.body["max_tokens"] <= 16_000 for call in calls)
    assert "file 0 line 0" in await offload_file(house, session)


async def test_an_unknown_model_has_the_window_that_the_provider_tells(house: House, double: Double):
    double.script(say("ok"))
    session = await house.open(model="claude-opus-4-8")
    assert (await house.turn(session))["status"] == "completed"
    gauge = await house.get(f"{session}/context")
    assert (gauge["max_input_tokens"], gauge["context_window_tokens"]) == (1_000_000, 200_000)
    assert told(await house.events(session), "context.warning") == []


async def test_a_cap_on_messages_is_told_by_records_view_and_file(house: House, double: Double):
    session = await open_long(house, 20, chars=300, max_view_messages=12)
    [told_of] = await next_turn(house, double, session)
    [record] = (await house.get(f"{session}/context/records"))["data"]
    assert (told_of["tier"], told_of["record_id"]) == ("message_cap", record["id"])
    [part] = record["parts"]
    assert (part["from_seq"], part["text"], record["evicted"]) == (4, "", part["to_seq"] - 3)
    view = (await house.get(f"{session}/context/view"))["messages"]
    assert len(view) <= 12
    marker = next(block for message in view for block in message["shaped"])
    assert marker["record_ids"] == [record["id"]]
    assert "file 0 line 0" in await offload_file(house, session)
    assert "file 5 line 0" in await offload_file(house, session)
    assert len(await house.messages(session)) == 2 * 20 + 4
    assert double.of("main")[-1].body["messages"][-1]["role"] == "user"
    assert (await house.get(f"{session}/context"))["compactions"] == 0


async def test_a_preset_of_the_server_holds_until_a_session_chooses_another(build: Build, double: Double):
    house = await build(double=double, context_preset="early-micro")
    marks = []
    for context in ({}, {"preset": "hango"}, {"preset": "hango", "micro_frac": 0.5}):
        session = await open_long(house, 1, **context)
        gauge = await house.get(f"{session}/context")
        marks.append((gauge["preset"], gauge["warm_tokens"], gauge["trigger_tokens"]))
    assert marks == [("early-micro", 19_200, 25_600), ("hango", 19_200, 27_200), ("hango", 16_000, 27_200)]
    refused = await house.http.post("/v1/sessions", json={"context": {"preset": "goose"}})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "context.preset"
    assert "must be one of early-micro, hango" in refused.json()["errors"][0]["rule"]
