"""A release that words its markers anew while a session is live."""

from dataclasses import replace

import pytest

from app.context import apply, elide, epoch, head, ledger, markers, wording
from app.conversation.events import EventType
from app.conversation.messages import tool_results
from app.middleware import mechanical_truncation
from app.middleware.summarization import tier
from tests.rooms.middleware.long_sessions import LongSession, head_of, tokens

OLD, NEW = "Do not reproduce", "Never copy this"


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch):
    """Called, it is the next release."""

    def publish() -> None:
        first = wording.WORDINGS[1]
        second = replace(first, result=first.result.replace(OLD, NEW), head=first.head.replace("the past", "before"))
        for module in (wording, markers, head, apply):
            monkeypatch.setattr(module, "WORDINGS", {1: first, 2: second})
        for module in (elide, epoch, ledger, tier, mechanical_truncation):
            monkeypatch.setattr(module, "SHAPE_VERSION", 2)

    return publish


def placeholders(request) -> list[str]:
    results = [block["content"] for message in request.messages for block in tool_results(message.content)]
    return [text for text in results if "removed" in text]


async def test_old_records_render_as_they_did_and_the_new_shape_begins_with_an_epoch(release):
    room = LongSession(window=40_000)
    await room.grow(*[1100] * 32)
    old = placeholders(room.last)
    assert room.causes == ["first", "threshold"]
    release()
    room.rebuild()
    await room.grow(*[1100] * 4)
    assert room.causes == ["first", "threshold", "shape"]
    now = placeholders(room.last)
    assert now[: len(old)] == old
    assert all(OLD in text for text in old)
    assert now[len(old) :]
    assert all(NEW in text for text in now[len(old) :])


async def test_the_epoch_comes_once_and_the_prefix_stays_after_it(release):
    room = LongSession(window=40_000)
    await room.grow(*[1100] * 5)
    release()
    room.rebuild()
    await room.grow(*[100] * 5)
    assert room.causes == ["first", "shape"]
    for before, after in zip(room.mains[-5:], room.mains[-4:], strict=False):
        assert after.messages[: len(before.messages)] == before.messages


async def test_a_head_keeps_the_words_it_was_written_in_until_the_next_one(release):
    room = LongSession()
    await room.chat(*[1750] * 11)
    assert "record of the past" in head_of(room.last)
    before = head_of(room.last)
    release()
    room.rebuild()
    await room.say("more")
    assert head_of(room.last) == before
    await room.chat(*[1750] * 10)
    assert "record of before" in head_of(room.last)


async def test_records_of_a_release_that_is_gone_are_ignored_with_a_warning(release, monkeypatch, caplog):
    room = LongSession(window=40_000)
    release()
    await room.grow(*[1100] * 32)
    monkeypatch.undo()
    room.rebuild()
    await room.say("back to the old release")
    warnings = [told for told in await room.told(EventType.CONTEXT_WARNING) if told["code"] == "record_ignored"]
    assert [told["numbers"]["records"] for told in warnings] == [1]
    assert [r.levelname for r in caplog.records if "record ignored" in r.message] == ["ERROR"]


async def test_a_view_that_shows_again_what_an_ignored_record_hid_is_measured_whole(release, monkeypatch):
    room = LongSession(window=40_000)
    release()
    await room.grow(*[1100] * 32)
    monkeypatch.undo()
    room.rebuild()
    seen = await room.turns.foresee(room.session)
    assert seen["tokens_before"] > tokens(room.last) + 5_000
