"""What an answer to a waiting run is made from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.conversation.run import Answer, Run, ToolCall
from app.conversation.session import Idempotency, Session


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run stands, read under the head's lock. `calls`: its newest ones, and those that were asked for by id."""

    session: Session
    run: Run
    calls: Sequence[ToolCall]


AnswerPlan = Callable[[Standing], Answer]


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """A client's key, and a fresh id that it is to stand for."""

    key: Idempotency
    answer_id: str
