"""Lists come in pages, oldest first, with an opaque cursor and a bound on their size."""

import pytest

from tests.double.control import Double
from tests.double.steps import say
from tests.journeys.house import Build, House

TALK = [{"role": role, "content": f"{role} {n}"} for n in range(4) for role in ("user", "assistant")]


async def walked(house: House, path: str, limit: int, **params) -> list[list]:
    """Every page of a list."""
    pages, after = [], {}
    while True:
        page = await house.get(path, limit=limit, **after, **params)
        pages.append(page["data"])
        if page["next"] is None:
            return pages
        after = {"after": page["next"]}


@pytest.fixture
async def filled(house: House, double: Double) -> str:
    """A session with seven turns."""
    double.default = say("answer")
    session = await house.open(messages=TALK)
    for n in range(7):
        await house.turn(session, f"question {n}")
    return session


async def test_pages_hold_everything_once_and_in_order(house: House, filled: str):
    for name, key in (("turns", "turn"), ("messages", "seq"), ("events", "seq")):
        whole = (await house.get(f"{filled}/{name}", limit=1000))["data"]
        for limit in (1, 3, len(whole) - 1, len(whole), len(whole) + 1):
            pages = await walked(house, f"{filled}/{name}", limit)
            assert [item for page in pages for item in page] == whole
            assert all(len(page) == limit for page in pages[:-1])
            assert 0 < len(pages[-1]) <= limit
        assert [item[key] for item in whole] == list(range(1, len(whole) + 1))


async def test_sessions_are_listed_in_the_order_of_their_creation(build: Build):
    house = await build()
    made = [(await house.open()).rpartition("/")[2] for _ in range(7)]
    for limit in (1, 3, 7, 8):
        pages = await walked(house, "/v1/sessions", limit)
        assert [session["id"] for page in pages for session in page] == made
    assert [len(page) for page in await walked(house, "/v1/sessions", 3)] == [3, 3, 1]


async def test_a_limit_over_a_thousand_is_a_thousand(build: Build):
    house = await build()
    talk = [{"role": role, "content": "x"} for _ in range(501) for role in ("user", "assistant")]
    session = await house.open(messages=talk)
    for limit in (1001, 10**30):
        page = await house.get(f"{session}/messages", limit=limit)
        assert (len(page["data"]), page["next"] is None) == (1000, False)
    assert len((await house.get(f"{session}/messages"))["data"]) == 100
    rest = await house.get(f"{session}/messages", after=page["next"])
    assert [row["seq"] for row in rest["data"]] == [1001, 1002]


async def test_pages_of_an_audience_hold_all_that_it_may_see(house: House, filled: str):
    whole = await house.messages(filled)
    for audience in ("user", "agent", "all"):
        pages = await walked(house, f"{filled}/messages", 3, visible_to=audience)
        assert [row for page in pages for row in page] == whole


async def test_a_cursor_beyond_the_end_gives_an_empty_last_page(house: House, filled: str):
    for name in ("turns", "messages", "events"):
        assert await house.get(f"{filled}/{name}", after=900_000) == {"data": [], "next": None}
