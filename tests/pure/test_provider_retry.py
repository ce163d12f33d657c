"""How long a failed call is waited for."""

from datetime import UTC, datetime

import pytest

from app.errors import ProviderFailure
from app.providers.wire.retry import LONGEST_WAIT_S, TOTAL_WAIT_S, WAITS_S, Backoff, retry_after

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
BUSY = ProviderFailure("provider_overloaded", "Overloaded", transient=True, status=529)


def waits(asked):
    """All waits until the backoff gives up, and the failure it gives up with."""
    backoff, found = Backoff(), []
    while True:
        try:
            found.append(backoff.after(BUSY, asked))
        except ProviderFailure as failure:
            return found, failure


def test_an_overload_of_two_minutes_is_survived_and_then_it_ends():
    found, failure = waits(None)
    assert found == list(WAITS_S)
    assert sum(found) >= 120
    assert failure.detail == f"After {len(WAITS_S) + 1} attempts: Overloaded"
    assert (failure.code, failure.transient, failure.provider_status) == ("provider_overloaded", False, 529)


def test_what_the_provider_asks_for_is_a_floor():
    assert waits(3.0)[0][:4] == [3.0, 3.0, 3.0, 4.0]
    assert waits(0.0)[0] == list(WAITS_S)


def test_all_waits_together_are_bounded():
    found, failure = waits(LONGEST_WAIT_S)
    assert sum(found) <= TOTAL_WAIT_S
    assert not failure.transient


def test_a_wait_that_is_too_long_ends_the_call_at_once():
    found, failure = waits(3600.0)
    assert found == []
    assert failure.detail == "The provider asks to wait 3600 s, at most 64 s are waited: Overloaded"
    assert not failure.transient


def test_what_is_not_transient_is_not_waited_for():
    rejected = ProviderFailure("provider_rejected", "no", transient=False, status=400)
    with pytest.raises(ProviderFailure) as caught:
        Backoff().after(rejected, 1.0)
    assert caught.value is rejected


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "nan"}, 0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 -0000"}, 30),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "later"}, None),
        ({}, None),
    ],
)
def test_the_header_is_read_in_all_its_forms(headers, seconds):
    assert retry_after(headers, NOW) == seconds
