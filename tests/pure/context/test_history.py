"""Bars of the gauge's picture from a session's events."""

from datetime import UTC, datetime
from itertools import count, pairwise

from app.context.history import Bar, bars_of
from app.conversation.events import EventType, StoredEvent

SEQ = count(1)


def usage(run: str, tokens: int) -> StoredEvent:
    return event(EventType.SESSION_USAGE, run, {"last_input_tokens": tokens})


def compacted(run: str, tier: str) -> StoredEvent:
    return event(EventType.CONTEXT_COMPACTED, run, {"tier": tier})


def event(kind, run, data):
    return StoredEvent(next(SEQ), kind, "ses_1", run, datetime(2026, 1, 1, tzinfo=UTC), data)


def queued(turn: int) -> StoredEvent:
    return event(EventType.TURN_QUEUED, f"run_{turn}", {"turn": turn})


def test_a_turn_is_a_bar_with_what_it_compacted():
    events = [
        queued(1), usage("run_1", 100), queued(2), compacted("run_2", "summarization"),
        compacted("run_2", "mechanical_truncation"), compacted("run_2", "micro_compaction"), usage("run_2", 60),
    ]  # fmt: skip
    assert bars_of(events, 10) == (Bar(1, 1, 100, 0), Bar(2, 2, 60, 2))


def test_a_turn_that_told_nothing_has_no_bar_and_takes_no_number():
    events = [queued(1), usage("run_1", 100), queued(2), queued(3), usage("run_3", 70), queued(4)]
    assert bars_of(events, 10) == (Bar(1, 1, 100, 0), Bar(3, 3, 70, 0))


def test_a_log_that_is_cut_at_the_front_keeps_the_numbers_of_its_turns():
    events = [usage("run_56", 100), queued(57), usage("run_57", 70)]
    assert bars_of(events, 10) == (Bar(57, 57, 70, 0),)


def test_many_turns_share_bars_that_hide_no_peak_and_no_compaction():
    events = [made for turn in range(1, 5_001) for made in (queued(turn), usage(f"run_{turn}", 1_000 + turn))]
    events.insert(1_400, compacted("run_700", "summarization"))
    bars = bars_of(events, 120)
    assert len(bars) <= 120
    assert [bars[0].first, bars[-1].last] == [1, 5_000]
    assert all(after.first == before.last + 1 for before, after in pairwise(bars))
    assert all(bar.input_tokens == 1_000 + bar.last for bar in bars)
    assert sum(bar.compactions for bar in bars) == 1


def test_a_session_without_turns_has_no_bar():
    assert bars_of([], 10) == ()
