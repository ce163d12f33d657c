"""A transcript that a client brings: read back equal, refused by rule, repaired on request, and gone on with."""

import pytest

from tests.double.control import Double
from tests.double.steps import say
from tests.journeys.house import House

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def use(name: str, tool: str = "read_file", **given) -> dict:
    return {"type": "tool_use", "id": name, "name": tool, "input": given}


def result(name: str, content="ok", **more) -> dict:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **more}


TALK = [
    {"role": "user", "content": "Xin chào, xem giúp tệp này \U0001f600"},
    {"role": "assistant", "content": [text("I look."), use("toolu_01", path="/workspace/a"), use("toolu_02", n=1.50)]},
    {
        "role": "user",
        "content": [
            result(
                "toolu_01",
                [
                    text("a dot"),
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                ],
            ),
            result("toolu_02", "failed: \\u0000 stays", is_error=True),
            text("and one thing more"),
        ],
    },
    {"role": "assistant", "content": "Done.\u2028Really."},
]


def as_stored(messages: list) -> list:
    return [
        {
            **message,
            "content": [text(message["content"])] if isinstance(message["content"], str) else message["content"],
        }
        for message in messages
    ]


def plain(rows: list) -> list:
    return [{"role": row["role"], "content": row["content"]} for row in rows]


async def test_a_transcript_is_read_back_as_it_was_brought(house: House):
    session = await house.open(messages=TALK)
    rows = await house.messages(session)
    assert plain(rows) == as_stored(TALK)
    assert [row["seq"] for row in rows] == [1, 2, 3, 4]
    assert {row["run_id"] for row in rows} == {None}
    assert await house.events(session) == []
    assert (await house.get(f"{session}/context"))["estimated_input_tokens"] > 100


async def test_the_next_turn_is_sent_on_top_of_it(house: House, double: Double):
    double.script(say("I go on."))
    session = await house.open(messages=TALK)
    assert (await house.turn(session, "go on"))["text"] == "I go on."
    [exchange] = double.of("main")
    sent = [
        {
            "role": message["role"],
            "content": [{k: v for k, v in block.items() if k != "cache_control"} for block in message["content"]],
        }
        for message in exchange.body["messages"]
    ]
    assert sent == [*as_stored(TALK), {"role": "user", "content": [text("go on")]}]
    assert not double.refused


async def test_a_transcript_that_ends_with_the_user_gets_the_next_turn_merged(house: House, double: Double):
    double.script(say("Both."))
    session = await house.open(messages=TALK[:3])
    assert (await house.turn(session, "go on"))["status"] == "completed"
    assert [row["role"] for row in await house.messages(session)] == ["user", "assistant", "user", "user", "assistant"]
    assert not double.refused


async def test_imported_results_are_files_too(house: House):
    session = await house.open(messages=TALK)
    paths = [file["path"] for file in (await house.get(f"{session}/files"))["data"]]
    assert "/tool_results/000002-00.txt" in paths
    assert (await house.http.get(f"{session}/files/tool_results/000002-01.txt")).text == "failed: \\u0000 stays"


BROKEN = {
    "an answer without its call": (2, [TALK[0], {"role": "assistant", "content": "hm"}, TALK[2], TALK[3]]),
    "a call without its answer": (1, [TALK[0], TALK[1], {"role": "user", "content": "never mind"}]),
    "half of a batch": (1, [TALK[0], TALK[1], {"role": "user", "content": [result("toolu_01")]}]),
    "text before results": (2, [*TALK[:2], {"role": "user", "content": [text("1"), *TALK[2]["content"][:2]]}]),
    "the assistant first": (0, TALK[3:]),
    "blank text": (0, [{"role": "user", "content": [text("  ")]}]),
    "no content": (0, [{"role": "user", "content": []}]),
}  # fmt: skip


@pytest.mark.parametrize(("place", "messages"), BROKEN.values(), ids=BROKEN)
async def test_a_broken_transcript_names_message_and_rule(house: House, place: int, messages: list):
    answer = await house.http.post("/v1/sessions", json={"messages": messages})
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "transcript_invalid")
    assert problem["message"] == place
    assert problem["rule"]
    assert problem["detail"].startswith(f"messages.{place}: ")
    assert (await house.get("/v1/sessions"))["data"] == []


@pytest.mark.parametrize(("place", "messages"), BROKEN.values(), ids=BROKEN)
async def test_a_repaired_transcript_reports_its_repairs_and_goes_on(
    house: House, double: Double, place: int, messages: list
):
    double.script(say("repaired"))
    answer = await house.http.post("/v1/sessions?repair=true", json={"messages": messages})
    assert answer.status_code == 201, answer.text
    assert answer.json()["repairs"]
    assert all(set(repair) == {"message", "done"} for repair in answer.json()["repairs"])
    run = await house.turn(f"/v1/sessions/{answer.json()['id']}", "go on")
    assert (run["error"], run["text"]) == (None, "repaired")
    assert not double.refused


async def test_a_sound_transcript_needs_no_repair(house: House):
    answer = await house.http.post("/v1/sessions?repair=true", json={"messages": TALK})
    assert answer.json()["repairs"] == []
    assert plain(await house.messages(f"/v1/sessions/{answer.json()['id']}")) == as_stored(TALK)


async def test_odd_ids_of_a_transcript_are_minted_anew(house: House, double: Double):
    double.script(say("fine"))
    odd = ["../../x", "call with space", "twice", "twice"]
    talk = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use(name) for name in odd]},
        {"role": "user", "content": [result(name) for name in odd]},
        {"role": "assistant", "content": "ok"},
    ]
    session = await house.open(messages=talk)
    rows = await house.messages(session)
    minted = [block["id"] for block in rows[1]["content"]]
    assert len(set(minted)) == 4
    assert set(minted) & set(odd) <= {"twice"}
    assert [block["tool_use_id"] for block in rows[2]["content"]] == minted
    assert (await house.turn(session, "on"))["status"] == "completed"
    assert not double.refused
