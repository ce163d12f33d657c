"""Lists of rows that hold much come in pages that a server can hold, and every row comes once."""

from dataclasses import replace
from typing import Any

from app.storage.stretch import STRETCH_BYTES
from tests.double.control import Double
from tests.double.steps import Reply, text
from tests.journeys.house import MODEL, Build, House

# Three of them pass the bound; blanks are few tokens.
TEXT = "and so on" + " " * (STRETCH_BYTES * 2 // 5) + "to the end"


async def pages(house: House, path: str) -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = []
    cursor: str | None = "0"
    while cursor is not None:
        page = await house.get(path, limit=1000, **({"after": cursor} if found else {}))
        found.append(page["data"])
        cursor = page["next"]
    return found


async def test_what_large_turns_have_left_comes_page_by_page(build: Build, double: Double):
    window = {"max_input_tokens": 10**8, "context_window_tokens": 10**8}
    house = await build(double=double, model_profiles={MODEL: window})
    double.settings = replace(double.settings, delta_chars=2**20, window=10**8)
    session = await house.open()
    for _ in range(4):
        double.script(Reply([text(TEXT)], whole=True))
        await house.turn(session)
    messages, turns, events = [await pages(house, f"{session}/{name}") for name in ("messages", "turns", "events")]
    assert [[row["seq"] for row in page] for page in messages] == [[1, 2, 3, 4, 5, 6], [7, 8]]
    assert [[run["turn"] for run in page] for page in turns] == [[1, 2, 3], [4]]
    assert {run["text"] for page in turns for run in page} == {TEXT}
    assert [event["seq"] for page in events for event in page] == [*range(1, 1 + sum(map(len, events)))]
    assert events[0][-1]["data"]["message"]["content"][0]["text"] == TEXT
    assert len(events) == 2
    async with house.follow(session, last_event_id=0) as reader:
        for _ in range(4):
            await reader.until("turn.completed")
    assert [frame.data for frame in reader.durable] == [event for page in events for event in page]


async def test_sessions_with_large_prompts_come_page_by_page(house: House):
    opened = [await house.open(system=TEXT) for _ in range(4)]
    found = await pages(house, "/v1/sessions")
    assert [[f"/v1/sessions/{session['id']}" for session in page] for page in found] == [opened[:3], opened[3:]]
