"""Every middleware test leaves the stored rows as they were, byte for byte."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from app.conversation.messages import Message, StoredMessage
from tests.pure.context.histories import rows_of
from tests.rooms.middleware.chain_room import written

Keep = Callable[[Sequence[Message]], list[StoredMessage]]


@pytest.fixture(autouse=True)
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
