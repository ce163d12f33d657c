"""The picture of the gauge, beside the numbers that the API tells."""

import re
from xml.etree import ElementTree

from tests.double.control import Double
from tests.double.steps import say
from tests.journeys.house import House

UNCACHED = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 5}
NS = "{http://www.w3.org/2000/svg}"


async def test_the_picture_shows_the_numbers_of_the_gauge_and_of_every_turn(house: House, double: Double):
    sizes = [900, 140_000, 170_000]
    double.script(*(say("done", usage={**UNCACHED, "input_tokens": tokens}) for tokens in sizes))
    session = await house.open()
    empty = await house.http.get(f"{session}/context.svg")
    assert "no turn yet" in empty.text
    for _ in range(3):
        await house.turn(session)
    answer, gauge = await house.http.get(f"{session}/context.svg"), await house.get(f"{session}/context")
    root = ElementTree.fromstring(answer.text)
    assert root.find(f"{NS}title").text == f"Context gauge: {round(gauge['fill'] * 100)} %"
    words = root.find(f"{NS}desc").text
    for tokens in (gauge["last_input_tokens"], gauge["trigger_tokens"], gauge["warm_tokens"]):
        assert f"{tokens:,}" in words
    assert f"level {gauge['level']}" in words
    bars = [title.text for rect in root.iter(f"{NS}rect") for title in rect]
    drawn = [int(re.search(r": ([\d,]+) tokens", bar)[1].replace(",", "")) for bar in bars]
    events = [event for event in await house.events(session) if event["type"] == "session.usage"]
    assert drawn == [event["data"]["last_input_tokens"] for event in events] == sizes
    assert (events[-1]["data"]["fill"], events[-1]["data"]["level"]) == (gauge["fill"], gauge["level"])


async def test_a_page_of_the_picture_can_do_nothing(house: House):
    answer = await house.http.get(f"{await house.open()}/context.svg")
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'; style-src 'unsafe-inline'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    missing = await house.http.get("/v1/sessions/ses_none/context.svg")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


async def test_compactions_are_marked_in_the_turn_that_made_them(house: House, double: Double):
    double.script(say("done"), say("# Conversation summary\nshort"))
    session = await house.open(context={"context_window_tokens": 8_000})
    await house.turn(session, "word " * 4_000)
    outcome = (await house.http.post(f"{session}/compact", json={})).json()["outcome"]
    gauge = await house.get(f"{session}/context")
    picture = (await house.http.get(f"{session}/context.svg")).text
    assert len(re.findall('class="cut"', picture)) == gauge["compactions"] == (outcome == "compacted")
