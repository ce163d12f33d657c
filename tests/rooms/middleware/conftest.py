"""What every test of the tiers holds to: they shape requests, never the transcript."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import pytest

from app.conversation.messages import Message, StoredMessage
from tests.pure.context.histories import rows_of
from tests.rooms.middleware.chain_room import written
from tests.rooms.middleware.long_sessions import OPENED
from tests.twins import stop_processes

Keep = Callable[[Sequence[Message]], list[StoredMessage]]


@pytest.fixture
def stored() -> Iterator[Keep]:
    """`stored(messages)` makes rows of them; whatever a test sends, they are not changed."""
    kept: list[tuple[list[StoredMessage], str]] = []

    def keep(messages: Sequence[Message]) -> list[StoredMessage]:
        rows = rows_of(messages)
        kept.append((rows, written(rows)))
        return rows

    yield keep
    for rows, before in kept:
        assert written(rows) == before


@pytest.fixture(autouse=True)
async def transcripts_stay_as_written() -> AsyncIterator[None]:
    """Rows before and after: whatever the test did, each is byte for byte what its step had appended."""
    yield
    await stop_processes()
    while OPENED:
        room = OPENED.pop()
        assert not room.written or await room.transcript_is_as_written()
