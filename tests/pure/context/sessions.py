"""Random sessions as the server writes them: turns of steps, ids used once, parallel batches, an open end."""

from collections.abc import Iterator
from itertools import count

from hypothesis import strategies as st

from app.conversation.messages import Block, Message, StoredMessage
from tests.pure.context.histories import answer, assistant, call_block, histories, row, rows_of, user

HUM = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
requests = st.sampled_from((user("do it"), user("look", IMAGE), user(IMAGE), user("a", "b")))
before_calls = st.lists(st.sampled_from((HUM, {"type": "text", "text": "let me see"})), max_size=2, unique_by=str)


@st.composite
def steps(draw: st.DrawFn, ids: Iterator[int]) -> tuple[Message, list[Block]]:
    calls = [call_block(f"toolu_{next(ids)}") for _ in range(draw(st.integers(1, 4)))]
    return assistant(*draw(before_calls), *calls), [answer(call["id"]) for call in calls]


@st.composite
def answered(draw: st.DrawFn, results: list[Block]) -> list[Message]:
    """One row; or two, with a hollow message between or the next request beside the results."""
    cut = draw(st.integers(0, len(results)))
    several = [user(*results[:cut]), assistant(HUM), user(*results[cut:])]
    return draw(st.sampled_from(([user(*results)], [user(*results, "and a word")], several)))


@st.composite
def sessions(draw: st.DrawFn) -> list[StoredMessage]:
    ids = count(1)
    transcript: list[Message] = []
    for _ in range(draw(st.integers(1, 4))):
        transcript.append(draw(requests))
        for _ in range(draw(st.integers(0, 5))):
            calls, results = draw(steps(ids))
            transcript += [calls, *draw(answered(results))]
        transcript.append(assistant("done"))
    calls, results = draw(steps(ids))
    open_end = draw(st.integers(0, len(results)))
    transcript += [draw(requests), calls, *([user(*results[:open_end])] if open_end else [])]
    drop = draw(st.integers(0, 3))
    return rows_of(transcript[: len(transcript) - drop])


@st.composite
def weighed(draw: st.DrawFn) -> tuple[list[StoredMessage], dict[int, int]]:
    """Any rows, and tokens of each by seq."""
    rows = draw(st.one_of(sessions(), histories()))
    return rows, {r.seq: draw(st.integers(0, 900)) for r in rows}


def long_turn(batches: int, result: str = "x" * 400) -> list[StoredMessage]:
    """One request, then steps of a single call with thinking."""
    steps_ = [(assistant(HUM, call_block(f"t{n}")), user(answer(f"t{n}", result))) for n in range(batches)]
    return rows_of([user("go"), *(message for step in steps_ for message in step)])


def est100(rows: list[StoredMessage]) -> dict[int, int]:
    return {r.seq: 100 for r in rows}


def hidden(stored: StoredMessage) -> StoredMessage:
    return row(stored.seq, stored.role, stored.content, agent_visible=False)
