"""All steps of one turn against what was answered so far: which calls come next, and what each step has to show."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.providers.offline.findings import outcome_text
from app.providers.offline.language import Language
from app.providers.offline.moves import CHUNK_CHARS, Call, moves
from app.providers.offline.standing import Outcome, Standing
from app.providers.offline.steps import CHANGING, Kind, Step

MAX_CALLS_AT_ONCE = 8
TOOLS = {
    Kind.LIST: "list_files",
    Kind.LOCATE: "list_files",
    Kind.READ: "read_file",
    Kind.SEARCH: "search_files",
    Kind.WRITE: "write_file",
    Kind.APPEND: "write_file",
    Kind.REPLACE: "edit_file",
    Kind.COUNT: "read_file",
    Kind.SUMMARIZE: "read_file",
}


@dataclass(frozen=True, slots=True)
class Placed:
    """A call with its place: number of the step, and of the call within it."""

    step: int
    part: int
    call: Call


@dataclass(frozen=True, slots=True)
class Job:
    steps: Sequence[Step]
    standing: Standing
    offered: frozenset[str]
    language: Language

    def done(self, number: int) -> tuple[Outcome, ...]:
        return self.standing.outcomes.get(number, ())

    def is_offered(self, number: int) -> bool:
        return TOOLS[self.steps[number].kind] in self.offered

    def is_forgotten(self, number: int) -> bool:
        """A later step was begun, so this one is over although its calls are no longer in the messages."""
        return not self.done(number) and number < max(self.standing.outcomes, default=0)

    def text(self, number: int) -> str | None:
        """What the step writes; None when the step it depends on found nothing to write."""
        step = self.steps[number]
        if step.source is None:
            return step.text
        return outcome_text(self.steps[step.source], self.done(step.source), self.language)

    def next_calls(self) -> list[Placed]:
        """Steps go in order; neighbours that do not touch each other go together. Empty at the end."""
        if self.standing.foreign:
            return []
        placed: list[Placed] = []
        for number in self._next_steps():
            parts = list(self._calls(number))
            if placed and (len(placed) + len(parts) > MAX_CALLS_AT_ONCE or _written(placed + parts) > CHUNK_CHARS):
                break
            placed += parts
        return placed

    def _calls(self, number: int) -> Iterator[Placed]:
        if self.is_offered(number) and not self.is_forgotten(number):
            done = self.done(number)
            for part, call in enumerate(moves(self.steps[number], done, self.text(number)), start=len(done)):
                yield Placed(number, part, call)

    def _next_steps(self) -> Iterator[int]:
        begun: dict[int, Step] = {}
        for number, step in enumerate(self.steps):
            if step.source in begun:
                return
            if not any(True for _ in self._calls(number)):
                continue
            if begun and not _independent(step, list(begun.values())):
                return
            begun[number] = step
            yield number


def _written(placed: Sequence[Placed]) -> int:
    return sum(len(str(each.call.input.get("content", ""))) for each in placed)


def _independent(step: Step, others: Sequence[Step]) -> bool:
    if step.kind not in CHANGING:
        return all(other.kind not in CHANGING for other in others)
    return all(other.kind in CHANGING and other.path != step.path for other in others)
