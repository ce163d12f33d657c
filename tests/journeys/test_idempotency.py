"""An idempotency key makes a repeated POST the same resource."""

import asyncio

from tests.double.control import Double
from tests.double.steps import Hold, say
from tests.journeys.house import STREAM, Build, House
from tests.journeys.sse import Reader


async def test_the_same_key_is_the_same_run(house: House, double: Double):
    double.script(say("once"))
    session = await house.open()
    first = await house.post(session, "go", key="k1", wait=True)
    again = await house.post(session, "go", key="k1", wait=True)
    assert first.json() == again.json()
    assert (first.status_code, again.status_code) == (200, 200)
    double.assert_spent()
    assert len(await house.messages(session)) == 2


async def test_posts_with_one_key_at_once_are_one_run(house: House, double: Double):
    double.script(say("once"))
    session = await house.open()
    answers = await asyncio.gather(*(house.post(session, "go", key="k1", wait=True) for _ in range(6)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["id"] for answer in answers}) == 1
    double.assert_spent()


async def test_a_repeat_after_a_cut_connection_attaches_to_the_live_run(house: House, double: Double):
    hold = Hold()
    double.script(say("a long answer in pieces", at={1: hold}))
    session = await house.open()
    sent = {"json": {"content": "go"}, "headers": {**STREAM, "Idempotency-Key": "k1"}}
    async with house.http.stream("POST", f"{session}/turns", **sent) as response:
        cut = await Reader.of(response)
        await cut.until("message.user")
    await hold.reached.wait()
    async with house.http.stream("POST", f"{session}/turns", **sent) as response:
        again = await Reader.of(response)
        await again.until("message.user")
        hold.release()
        await again.rest()
    assert again.durable[: len(cut.durable)] == cut.durable
    assert again.types[-1] == "turn.completed"
    assert [event["type"] for event in await house.events(session)].count("turn.queued") == 1
    double.assert_spent()


async def test_another_body_under_the_same_key_is_a_conflict_that_stores_nothing(house: House, double: Double):
    double.script(say("once"))
    session = await house.open()
    await house.post(session, "go", key="k1", wait=True)
    log = await house.events(session)
    answer = await house.post(session, "something else", key="k1")
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_mismatch")
    assert await house.events(session) == log


async def test_a_body_is_the_same_whatever_its_spaces_and_order(house: House, double: Double):
    double.script(say("once"))
    session = await house.open()
    ids = set()
    for body in (
        '{"content":"go","metadata":{"a":1,"b":2}}',
        '{ "metadata": {"b": 2, "a": 1}, "content": "g\\u006f" }',
    ):
        headers = {"Idempotency-Key": "k1"}
        answer = await house.http.post(f"{session}/turns?wait=true", content=body, headers=headers)
        ids.add(answer.json()["id"])
    assert len(ids) == 1


async def test_the_key_is_looked_up_before_the_session_is_found_busy(house: House, double: Double):
    hold = Hold()
    double.script(say("once", at={0: hold}))
    session = await house.open()
    first = await house.post(session, "go", key="k1")
    await hold.reached.wait()
    again = await house.post(session, "go", key="k1")
    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])
    hold.release()
    async with house.follow(session) as reader:
        await reader.until("turn.completed")


async def test_a_refused_post_does_not_use_its_key_up(house: House, double: Double):
    hold = Hold()
    double.script(say("one", at={0: hold}), say("two"))
    session = await house.open()
    await house.post(session, "first")
    await hold.reached.wait()
    assert (await house.post(session, "second", key="k2")).status_code == 409
    hold.release()
    async with house.follow(session) as reader:
        await reader.until("turn.completed")
    assert (await house.post(session, "second", key="k2", wait=True)).json()["text"] == "two"


async def test_keys_belong_to_their_path(house: House, double: Double):
    double.script(say("one"), say("two"))
    sessions = [await house.open(), await house.open()]
    runs = [(await house.post(session, "go", key="k1", wait=True)).json()["text"] for session in sessions]
    assert runs == ["one", "two"]


async def test_a_session_is_opened_once_per_key(house: House):
    async def opened(title: str) -> tuple[int, str]:
        body = {"metadata": {"title": title}}
        answer = await house.http.post("/v1/sessions", json=body, headers={"Idempotency-Key": "k1"})
        return answer.status_code, answer.json().get("id", answer.json().get("code"))

    first, again = await opened("a"), await opened("a")
    assert first == again
    assert first[0] == 201
    assert await opened("b") == (409, "idempotency_mismatch")
    assert len((await house.get("/v1/sessions"))["data"]) == 1


async def test_a_key_of_another_tenant_is_another_key(build: Build, double: Double):
    house = await build(double=double, api_keys="a:key-of-tenant-a-0123456789,b:key-of-tenant-b-0123456789")
    ids = set()
    for key in ("key-of-tenant-a-0123456789", "key-of-tenant-b-0123456789"):
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "k1"}
        ids.add((await house.http.post("/v1/sessions", json={}, headers=headers)).json()["id"])
    assert len(ids) == 2


async def test_after_a_day_a_key_is_free_again(house: House, double: Double):
    double.script(say("one"), say("two"))
    session = await house.open()
    first = (await house.post(session, "go", key="k1", wait=True)).json()
    async with house.services.database.connection() as connection:
        await connection.execute("update idempotency set created_at = created_at - interval '24 hours 1 second'")
    other = (await house.post(session, "something else", key="k1", wait=True)).json()
    assert (first["text"], other["text"]) == ("one", "two")


async def test_an_import_is_made_once_per_key(house: House):
    async def opened(text: str) -> tuple[int, str]:
        body = {"messages": [{"role": "user", "content": text}]}
        answer = await house.http.post("/v1/sessions", json=body, headers={"Idempotency-Key": "k1"})
        return answer.status_code, answer.json().get("id", answer.json().get("code"))

    first = await opened("a")
    assert first[0] == 201
    assert await opened("a") == first
    assert await opened("b") == (409, "idempotency_mismatch")
    assert len(await house.messages(f"/v1/sessions/{first[1]}")) == 1
