"""What the model is shown shortened: listed with the reason, readable whole, and a picture as a picture again."""

import base64
import re

from app.conversation.tools import ToolResult
from tests.double.control import Double
from tests.double.steps import Reply, call, say
from tests.journeys.house import Build, House
from tests.journeys.long_sessions import WINDOW, lines, open_long, prose, summarizing
from tests.journeys.tools import Answering

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


async def away(house: House, session: str) -> dict:
    """Tiers and reasons by path, of the files that hold what was put away."""
    files = (await house.get(f"{session}/files", limit=1000))["data"]
    return {
        file["path"]: [(why["tier"], why["reason"]) for why in file["put_away"]] for file in files if file["put_away"]
    }


async def test_a_result_put_away_at_birth_is_listed_with_its_record(build: Build, double: Double):
    house = await build(double=double, tools=[Answering("fetch", lambda _: ToolResult(lines(1, 90_000)))])
    session = await house.open(context={"context_window_tokens": WINDOW})
    double.script(Reply([call("t1", "fetch", {})]), say("seen"))
    await house.turn(session)
    assert await away(house, session) == {"/tool_results/000002-00.txt": [("result_offload", None)]}
    [record] = (await house.get(f"{session}/context/records"))["data"]
    files = (await house.get(f"{session}/files"))["data"]
    assert [why["record_id"] for file in files for why in file["put_away"]] == [record["id"]]


async def test_what_a_summary_evicted_is_listed_with_its_reason(house: House, double: Double):
    session = await open_long(house, 20, make=prose)
    assert await away(house, session) == {}
    summarizing(double)
    await house.http.post(f"{session}/compact")
    path = f"/conversation_history/{session.rpartition('/')[2]}.md"
    assert await away(house, session) == {path: [("summarization", "manual")]}


PICTURES = [
    {"role": "user", "content": [{"type": "text", "text": "like this"}, IMAGE]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "shot", "name": "shoot", "input": {}}]},
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "shot", "content": [IMAGE, {"type": "text", "text": "dot"}]}
        ],
    },
    {"role": "assistant", "content": "The same dot."},
    {"role": "user", "content": "Thanks. What else?"},
    {"role": "assistant", "content": "Nothing."},
]


async def test_a_picture_that_left_the_view_is_shown_again_by_its_path(house: House, double: Double):
    messages = [*prose(20), *PICTURES]
    session = await house.open(messages=messages, context={"context_window_tokens": WINDOW, "keep_frac": 0.3})
    summarizing(double)
    await house.http.post(f"{session}/compact")
    assert PIXEL not in str(await house.get(f"{session}/context/view"))
    media = [path for path, why in (await away(house, session)).items() if ("media_shedding", None) in why]
    row = len(prose(20)) + 1
    assert media == [f"/tool_results/{row:06}-01.user.txt", f"/tool_results/{row + 1:06}-00.txt"]
    for path in media:
        told = (await house.http.get(f"{session}/files{path}")).text
        [shown] = re.findall(r"read_file (\S+png) shows it", told)
        assert (await house.http.get(f"{session}/files{shown}")).content == base64.b64decode(PIXEL)
    double.script(Reply([call("t9", "read_file", {"path": shown})]), say("the dot again"), purpose="main")
    await house.turn(session, "look at it again")
    [result] = double.of("main")[-1].body["messages"][-1]["content"]
    assert [part["type"] for part in result["content"]] == ["text", "image"]
    assert result["content"][1]["source"]["data"] == PIXEL
    assert not double.refused


async def test_a_long_list_comes_in_pages(house: House):
    session = await house.open(messages=prose(1))
    for number in range(3):
        await house.services.files.write(session.rpartition("/")[2], f"/workspace/{number}", b"x")
    first = await house.get(f"{session}/files", limit=2)
    rest = await house.get(f"{session}/files", limit=2, after=first["next"])
    assert [file["path"] for page in (first, rest) for file in page["data"]] == [f"/workspace/{n}" for n in range(3)]
    assert rest["next"] is None
