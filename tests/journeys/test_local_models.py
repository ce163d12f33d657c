"""Models of compatible servers that no table names."""

from dataclasses import replace

import pytest

from app.providers.openai.provider import OpenAIProvider
from tests.double.control import Double
from tests.double.settings import Model
from tests.double.steps import HttpError, Reply, call, say
from tests.journeys.house import Build, provider_of
from tests.journeys.long_sessions import prose, summarizing
from tests.rooms.providers.anthropic_room import KEY, StillClock

NAME = "local:8b"
# As vLLM does: a prompt is refused together with the room that is asked for its answer.
SMALL = Model(window=8192, max_output=8192, cache_min=0, sums_max_tokens=True)


class Untold(OpenAIProvider):
    """Of a server whose list of models names no sizes."""

    async def retrieve_model(self, model: str) -> None:
        return None


@pytest.fixture
def local(double: Double) -> Double:
    double.settings = replace(double.settings, models={NAME: SMALL})
    return double


@pytest.mark.parametrize("double", ["openai"], indirect=True)
async def test_a_long_session_stays_within_the_window_that_the_server_tells(build: Build, local: Double):
    house = await build(provider=provider_of(local), model=NAME)
    session = await house.open(messages=prose(14, 1500))
    summarizing(local, 2)
    local.script(Reply([call("t1", "list_files", {"path": "/"})]), say("8080"), purpose="main")
    run = await house.turn(session, "And now?")
    assert (run["status"], run["text"]) == ("completed", "8080")
    assert not local.refused
    assert (await house.get(f"{session}/context"))["compactions"] == 1


@pytest.mark.parametrize("double", ["openai"], indirect=True)
async def test_a_window_that_nobody_tells_is_learned_from_the_first_refusal(build: Build, local: Double):
    provider = Untold(KEY, f"{local.base_url}/v1", StillClock())
    house = await build(provider=provider, model=NAME)
    session = await house.open()
    local.script(say("one"), say("two"))
    assert [(await house.turn(session))["text"] for _ in range(2)] == ["one", "two"]
    # The first is an overflow; later only the room for the answer is too large, by what the estimate is off.
    refused = [exchange.body["max_tokens"] for exchange in local.of("main") if exchange.error]
    assert refused[0] > SMALL.window > max(refused[1:], default=0)
    assert (await house.get(f"{session}/context"))["compactions"] == 0
    assert (await house.get(f"{session}/context"))["max_input_tokens"] == SMALL.window


@pytest.mark.parametrize("double", ["openai"], indirect=True)
async def test_a_model_without_tools_is_told_in_the_servers_words(build: Build, local: Double):
    house = await build(provider=provider_of(local), model=NAME)
    local.script(HttpError(400, f"registry/{NAME} does not support tools"))
    run = await house.turn(await house.open())
    assert run["error"]["code"] == "provider_rejected"
    assert run["error"]["detail"].endswith("does not support tools")
