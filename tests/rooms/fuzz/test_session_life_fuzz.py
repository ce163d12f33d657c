"""Whatever clients, models and crashes do to sessions, in any order: every invariant holds after every step."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from app.conversation.run import TERMINAL, RunStatus
from app.conversation.session import Idempotency, NewSession, SessionSettings
from app.errors import IdempotencyMismatch, NotFound, SessionBusy
from app.sessions.transcript_import import import_rows
from tests.journeys.long_sessions import prose
from tests.pure.context.histories import messages
from tests.rooms.fuzz.life import Known, Life
from tests.rooms.fuzz.life_stores import MemoryWorks, PostgresWorks
from tests.twins import posted

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]

PLANS = st.lists(
    st.sampled_from(("say", "echo", "held", "safe", "stand", "fail", "unknown_tool")), min_size=1, max_size=4
)
KEYS = st.sampled_from(("k1", "k2"))


def text_alone(block: dict) -> dict:
    """An error result with media has a form that no import takes; without the media it may come."""
    if block["type"] != "tool_result" or not block.get("is_error") or isinstance(block["content"], str):
        return block
    return {**block, "content": [part for part in block["content"] if part["type"] == "text"]}


class SessionLife(RuleBasedStateMachine):
    sessions = Bundle("sessions")
    works: Callable[[], MemoryWorks] = MemoryWorks

    def __init__(self) -> None:
        super().__init__()
        self.life = Life(self.works)
        self.known: list[Known] = []

    @initialize(target=sessions)
    def begin(self) -> Known:
        return self._open([])

    @rule(target=sessions, transcript=messages(5))
    def bring(self, transcript: list) -> Known:
        """A session that begins with an imported transcript."""
        content = [(one.role, [text_alone(block) for block in one.content]) for one in transcript]
        return self._open([{"role": role, "content": blocks} for role, blocks in content])

    @rule(target=sessions)
    def bring_much(self) -> Known:
        """A session that is near its trigger."""
        return self._open(prose(10))

    def _open(self, transcript: list) -> Known:
        works = self.life.works
        rows, _ = import_rows(transcript, True, works.ids)
        new = NewSession(works.ids.new("ses"), "t", (), "claude-sonnet-4-6", SessionSettings())
        session, _ = self.life.run(works.sessions.create(new, rows, None))
        self.known.append(Known(session))
        return self.known[-1]

    @rule(known=sessions, plan=PLANS)
    def post_and_stand(self, known: Known, plan: list[str]) -> None:
        """Most of what can go wrong needs a run that is still at work."""
        self.post(known, [*plan, "held"], queue=True)

    @rule(known=sessions, plan=PLANS, queue=st.booleans())
    def post(self, known: Known, plan: list[str], queue: bool) -> None:
        busy = [run.id for run in self.life.live(known)]
        self.life.plan += plan
        posting = self.life.turns.post(known.session, posted(), queue, None)
        if busy and not queue:
            with pytest.raises(SessionBusy) as refused:
                self.life.run(posting)
            assert refused.value.extra["run_id"] in busy
            return
        run, first = self.life.run(posting)
        assert first is not None
        assert run.turn == len(self.life.runs_of(known))

    @rule(known=sessions, name=KEYS, body=st.sampled_from(("a", "a", "b")))
    def post_with_a_key(self, known: Known, name: str, body: str) -> None:
        """The same key and body give the same run for ever; another body is refused."""
        made = known.keys.get(name)
        posting = self.life.turns.post(known.session, posted(), True, Idempotency("t", known.session.id, name, body))
        if made and made[1] != body:
            with pytest.raises(IdempotencyMismatch):
                self.life.run(posting)
            return
        run, first = self.life.run(posting)
        assert made is None or (made == (run.id, body) and first is None)
        known.keys[name] = (run.id, body)

    @rule()
    def go_on(self) -> None:
        """All that stands at a gate goes on."""
        self.life.plan.clear()
        self.life.gate.set()
        self.life.run(self.life.quiet())

    @rule(known=sessions, which=st.integers(0, 5))
    def cancel(self, known: Known, which: int) -> None:
        runs = self.life.runs_of(known)
        if runs:
            run = runs[which % len(runs)]
            self.life.run(self.life.turns.cancel(known.session.id, run.id))
            self.life.run(self.life.quiet())
            after = self.life.runs_of(known)[run.turn - 1]
            assert after.status is (run.status if run.status in TERMINAL else RunStatus.CANCELLED)

    @rule(known=sessions)
    def cancel_at_work(self, known: Known) -> None:
        if live := self.life.live(known):
            self.life.run(self.life.turns.cancel(known.session.id, live[0].id))
            self.life.run(self.life.quiet())
            assert self.life.runs_of(known)[live[0].turn - 1].status is RunStatus.CANCELLED

    @rule(known=sessions)
    def die_twice_in_one_call(self, known: Known) -> None:
        """All that stands in the same call with it is interrupted too."""
        self.crash()  # the next process has a gate of its own, which is closed
        if not self.life.live(known):
            self.life.plan[:0] = ["stand"] * 20
            run, _ = self.life.run(self.life.turns.post(known.session, posted(), False, None))
            self.life.run(self.life.quiet())
            self.crash()
            self.crash()
            self.life.plan.clear()
            assert self.life.runs_of(known)[run.turn - 1].status is RunStatus.INTERRUPTED

    @rule(known=sessions)
    def compact(self, known: Known) -> None:
        before = list(known.rows)
        if self.life.live(known):
            with pytest.raises(SessionBusy):
                self.life.run(self.life.turns.compact(known.session, "", None))
        else:
            outcome = self.life.run(self.life.turns.compact(known.session, "", None))
            assert outcome["tokens_after"] <= outcome["tokens_before"] or outcome["record_id"] is None
        self.life.run(self.life.check(known))
        assert known.rows == before

    @rule()
    def crash(self) -> None:
        """The process dies where it is; the next one takes over what it had."""
        self.life.run(self.life.die())
        self.life.turns = self.life.run(self.life.next_process())
        self.life.run(self.life.quiet())

    @rule()
    def fall_asleep(self) -> None:
        """The process lives on but has lost its leases: what it still tries to write is refused."""
        old, gate = self.life.turns, self.life.gate
        stolen = old._runner.leases
        self.life.turns = self.life.run(self.life.next_process())
        self.life.run(self.life.wake(old, gate, stolen, self.known))

    @rule(known=sessions, after=st.integers(0, 30))
    def resume(self, known: Known, after: int) -> None:
        """A reader of an ended run gets each of its events behind the cursor once, and then its end."""
        ended = [run.id for run in self.life.runs_of(known) if run.status in TERMINAL]
        if ended:
            log = self.life.run(self.life.works.log(known.session))
            own = [event.seq for event in log if event.run_id == ended[-1]]
            cursor = min(after, own[-1] - 1)
            assert self.life.run(self._read(known, cursor, ended[-1])) == [seq for seq in own if seq > cursor]

    async def _read(self, known: Known, after: int, run_id: str) -> list[int]:
        follower = self.life.turns.follow(known.session.id, after, run_id, until=run_id)
        return [item.seq async for item in follower.items(1) if item is not None]

    @rule(known=sessions, title=st.sampled_from(("a", "b")))
    def rename(self, known: Known, title: str) -> None:
        changed = self.life.run(self.life.works.sessions.update("t", known.session.id, title, None, None))
        assert changed.title == title

    @precondition(lambda self: len(self.known) > 3)
    @rule(known=consumes(sessions))
    def delete(self, known: Known) -> None:
        if self.life.live(known):
            with pytest.raises(SessionBusy):
                self.life.run(self.life.works.sessions.delete("t", known.session.id))
            for run in self.life.live(known):
                self.life.run(self.life.turns.cancel(known.session.id, run.id))
            self.life.run(self.life.quiet())
        self.life.run(self.life.works.sessions.delete("t", known.session.id))
        self.known.remove(known)
        with pytest.raises(NotFound):
            self.life.run(self.life.works.sessions.get("t", known.session.id))

    @invariant()
    def holds(self) -> None:
        self.life.run(self.life.quiet())
        for known in self.known:
            self.life.run(self.life.check(known))

    def teardown(self) -> None:
        """Whatever has happened, each session takes a turn and ends it."""
        self.go_on()
        for known in self.known:
            run, _ = self.life.run(self.life.turns.post(known.session, posted("and now?"), True, None))
            self.life.run(self.life.quiet())
            assert self.life.runs_of(known)[run.turn - 1].status is RunStatus.COMPLETED
        self.holds()
        self.life.run(self.life.stop())
        self.life.runner.close()


@pytest.fixture
def stored(database_url: str) -> None:
    PostgresLife.works = partial(PostgresWorks, database_url)


class PostgresLife(SessionLife):
    """The same on PostgreSQL."""


MANY = settings.default.max_examples
TestSessionLife = SessionLife.TestCase
TestSessionLife.settings = settings(max_examples=MANY // 2, stateful_step_count=40)
TestPostgresLife = pytest.mark.usefixtures("stored")(PostgresLife.TestCase)
TestPostgresLife.settings = settings(max_examples=MANY // 20, stateful_step_count=30)
