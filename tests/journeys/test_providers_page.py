"""The example of docs/providers.md, run as it stands there against a server at another port."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.double.control import Double
from tests.double.settings import Model
from tests.double.steps import Reply, call, say
from tests.journeys.house import House, client
from tests.serving import ROOT, process

EXAMPLE, PROFILE = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/providers.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("double", ["openai"], indirect=True)
async def test_the_example_serves_a_local_model(double: Double, database_url: str, tmp_path: Path):
    *exports, command = EXAMPLE.strip().splitlines()
    chosen = dict(line.split(" ", 1)[1].split("=", 1) for line in exports)
    profile = dict([shlex.split(PROFILE)[1].split("=", 1)])
    assert chosen["OPENAI_BASE_URL"].startswith("http://127.0.0.1:")
    double.settings = replace(double.settings, models={chosen["HANGO_MODEL"]: Model(32_768, 8192, 0)})
    double.script(Reply([call("call_0", "write_file", {"path": "/workspace/a.txt", "content": "hi"})]), say("Written."))
    chosen["OPENAI_BASE_URL"] = f"{double.base_url}/v1"
    environment = {**chosen, **profile, "HANGO_DATABASE_URL": database_url, "HANGO_DATA_DIR": str(tmp_path)}
    async with process(environment, "app.cli", *command.split()[1:]) as server, client(server.url) as http:
        house = House(http)
        session = await house.open()
        assert (await house.turn(session, "write a file"))["text"] == "Written."
        assert (await house.http.get(f"{session}/files/workspace/a.txt")).text == "hi"
        [model] = [each for each in (await house.get("/v1/models"))["data"] if each["model"] == chosen["HANGO_MODEL"]]
        assert model["max_input_tokens"] == 32_768
    assert f"provider openai, model {chosen['HANGO_MODEL']}" in server.log
    assert not double.refused
