"""A tenant's share: live runs as told, turns in any 60 seconds."""

from dataclasses import dataclass

import pytest

from app.errors import TooManyLiveRuns, TooManyRequests
from app.turns.admission import Admission


@dataclass
class Clock:
    seconds: float = 1000

    def monotonic(self) -> float:
        return self.seconds


def test_without_limits_nothing_is_asked():
    assert Admission(Clock()).of("t") is None


def test_live_runs_up_to_the_limit_are_let_in():
    admit = Admission(Clock(), max_live=2).of("t")
    admit(0)
    admit(1)
    with pytest.raises(TooManyLiveRuns) as refused:
        admit(2)
    assert (refused.value.extra["limit"], refused.value.status) == (2, 429)


def test_the_rate_holds_in_any_minute_and_says_when_to_ask_again():
    clock = Clock()
    admit = Admission(clock, per_minute=3).of("t")
    for _ in range(3):
        admit(0)
        clock.seconds += 20
    admit(0)  # the first is a minute old
    clock.seconds += 0.5
    with pytest.raises(TooManyRequests) as refused:
        admit(0)
    assert (refused.value.code, refused.value.extra) == ("rate_limited", {"limit": 3, "retry_after_s": 20})
    clock.seconds += refused.value.retry_after_s
    admit(0)


def test_each_tenant_has_a_rate_of_its_own():
    admission = Admission(Clock(), per_minute=1)
    admission.of("one")(0)
    admission.of("two")(0)
    with pytest.raises(TooManyRequests):
        admission.of("one")(0)


def test_what_the_other_limit_refused_is_not_counted():
    admit = Admission(Clock(), max_live=1, per_minute=1).of("t")
    with pytest.raises(TooManyLiveRuns):
        admit(1)
    admit(0)
