"""Notes by scope, over PostgreSQL and over the twin in memory."""

import asyncio
from datetime import date

from app.conversation.notes import Note, Scope

DAY = date(2026, 1, 2)
SCOPE = Scope("t", "coder")


def note(text: str, session: str = "ses_1") -> Note:
    return Note(DAY, session, text)


async def texts(notes, scope: Scope = SCOPE) -> list[str]:
    return [each.text for each in await notes.read(scope)]


async def test_notes_come_back_in_order_and_as_they_were(notes):
    await notes.add(SCOPE, [note("a"), note("b: \u2028 é")], 10)
    await notes.add(SCOPE, [note("c", "ses_2")], 10)
    found = await notes.read(SCOPE)
    assert [(each.day, each.session_id, each.text, each.seq) for each in found] == [
        (DAY, "ses_1", "a", 1), (DAY, "ses_1", "b: \u2028 é", 2), (DAY, "ses_2", "c", 3),
    ]  # fmt: skip


async def test_the_oldest_go_when_there_are_too_many(notes):
    for number in range(7):
        await notes.add(SCOPE, [note(str(number))], 3)
    assert await texts(notes) == ["4", "5", "6"]
    await notes.add(SCOPE, [note(f"at once {number}") for number in range(5)], 3)
    assert await texts(notes) == ["at once 2", "at once 3", "at once 4"]
    await notes.add(SCOPE, [], 1)
    assert await texts(notes) == ["at once 4"]


async def test_the_same_note_of_one_session_is_kept_once(notes):
    for session in ("ses_1", "ses_1", "ses_2"):
        await notes.add(SCOPE, [note("a", session)], 10)
    assert await texts(notes) == ["a", "a"]


async def test_a_scope_is_a_tenant_and_an_agent(notes):
    await notes.add(SCOPE, [note("mine")], 10)
    for other in (Scope("t", ""), Scope("u", "coder"), Scope("t coder", "")):
        assert await texts(notes, other) == []


async def test_a_replacement_takes_the_old_place_and_what_came_meanwhile_stays_behind_it(notes):
    await notes.add(SCOPE, [note("a"), note("b"), note("c")], 10)
    old = await notes.read(SCOPE)
    await notes.add(SCOPE, [note("d")], 10)
    assert await notes.replace(SCOPE, old, [note("a, b and c", "merged")])
    assert await texts(notes) == ["a, b and c", "d"]
    await notes.add(SCOPE, [note("e")], 10)
    assert await texts(notes) == ["a, b and c", "d", "e"]


async def test_a_replacement_of_what_is_gone_or_changed_does_nothing(notes):
    await notes.add(SCOPE, [note("a"), note("b")], 10)
    old = await notes.read(SCOPE)
    await notes.add(SCOPE, [note("c")], 2)
    assert not await notes.replace(SCOPE, old, [note("x")])
    now = await notes.read(SCOPE)
    assert await notes.replace(SCOPE, now, [note("y"), note("z")])
    assert not await notes.replace(SCOPE, now, [note("x")])
    assert await texts(notes) == ["y", "z"]


async def test_writers_at_once_lose_nothing(notes):
    await asyncio.gather(*[notes.add(SCOPE, [note(str(number))], 100) for number in range(30)])
    found = await notes.read(SCOPE)
    assert {each.text for each in found} == {str(number) for number in range(30)}
    assert [each.seq for each in found] == list(range(1, 31))
