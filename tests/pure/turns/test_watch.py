"""When an expired lease means a dead owner: looks at the store by the clock, in thirds of a lease."""

import pytest

from app.turns.watch import Watch

EVEN, LATE = 1.0, 2.5


class Hand:
    def __init__(self) -> None:
        self.time = 100.0

    def monotonic(self) -> float:
        return self.time


@pytest.mark.parametrize(
    ("pauses", "tells"),
    [
        ([0, EVEN, EVEN, EVEN], "yyyy"),
        ([0, 2, EVEN], "yyy"),
        ([0, LATE, EVEN, EVEN, EVEN], "ynnyy"),
        ([LATE, EVEN, EVEN], "nny"),
        ([0, LATE, LATE, LATE, LATE], "ynyny"),
        ([0, 1000, 0, 0, EVEN, EVEN], "ynnnny"),
    ],
)
def test_after_a_late_look_two_thirds_of_a_lease_tell_nothing(pauses: list[float], tells: str):
    clock = Hand()
    watch = Watch(clock, lease_s=3)  # type: ignore[arg-type]
    told = ""
    for pause in pauses:
        clock.time += pause
        told += "y" if watch.looked() else "n"
    assert told == tells
