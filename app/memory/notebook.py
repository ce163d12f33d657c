"""The notes of a scope: shown, added, merged when there are too many. A model that fails costs notes, never a turn."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from app.aside import ask_aside
from app.context.summary_input import plan_chunks
from app.conversation.messages import Content, Message, StoredMessage, text_block, text_of, tool_uses
from app.conversation.model_profile import ModelProfile
from app.conversation.notes import Note, Scope, scope_of
from app.conversation.request import ModelRequest
from app.conversation.session import Session
from app.conversation.usage import Purpose, Usage
from app.memory.wording import CONCLUDE, MERGE, conclude_text, memory_block, merge_text, read_conclusion, read_merged
from app.ports import Clock, Estimator, NoteStore, Provider, SessionStore

log = logging.getLogger(__name__)

CALL_S = 60.0
MAX_ANSWER_TOKENS = 8_000
# Of the window; the rest is for the prompt and for estimates that are too low.
INPUT_SHARE = 0.7


@dataclass(frozen=True, slots=True)
class Notebook:
    """`most`: lines of a scope, at any time. `merges`: a full scope is merged by a model before the oldest lines go.

    `model_for(session)`: the profile of the model that writes and merges notes.
    """

    notes: NoteStore
    sessions: SessionStore
    provider: Provider
    estimator: Estimator
    clock: Clock
    most: int
    merges: bool
    model_for: Callable[[Session], ModelProfile]
    _merging: WeakValueDictionary[Scope, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def blocks(self, session_id: str) -> Content:
        """The system block of the session's scope."""
        return memory_block(await self.read(session_id))

    async def read(self, session_id: str) -> Sequence[Note]:
        """Raises NotFound."""
        return await self.notes.read(_scope(await self.sessions.find(session_id)))

    async def remember(self, session_id: str, text: str) -> Usage:
        """Adds one note; returns what the merging of others cost."""
        session = await self.sessions.find(session_id)
        return await self._add(session, [Note(self.clock.now().date(), session.id, text)])

    async def conclude(self, session: Session, summary: str, rows: Sequence[StoredMessage]) -> Usage:
        """Adds what should last of a session: `summary` of its older part, and the rows after it."""
        spent: list[Usage] = []
        text = await self._conversation(session, summary, rows)
        answer = await self._ask(session, CONCLUDE, text, spent) if text else ""
        notes = read_conclusion(answer, self.clock.now().date(), session.id)
        return sum(spent, await self._add(session, notes) if notes else Usage())

    async def _conversation(self, session: Session, summary: str, rows: Sequence[StoredMessage]) -> str:
        """As much of the end as one call can read."""
        capacity = int(self.model_for(session).working_window * INPUT_SHARE)
        plan = await asyncio.to_thread(plan_chunks, rows, capacity, 1, self.estimator.estimate)
        conversation = "".join(chunk.text for chunk in plan.chunks)
        return conclude_text(summary, conversation) if summary or conversation else ""

    async def _add(self, session: Session, new: Sequence[Note]) -> Usage:
        scope = _scope(session)
        spent: list[Usage] = []
        if self.merges:
            merging = self._merging.setdefault(scope, asyncio.Lock())
            # Who waits for another's merging makes none: there is room now, or the model does not answer anyway.
            waits = merging.locked()
            async with merging:
                if not waits:
                    await self._make_room(session, scope, len(new), spent)
        await self.notes.add(scope, new, self.most)
        return sum(spent, Usage())

    async def _make_room(self, session: Session, scope: Scope, wanted: int, spent: list[Usage]) -> None:
        present, left = await self.notes.read(scope), self.most - wanted
        if len(present) <= left or left <= 0:
            return
        answer = await self._ask(session, MERGE.format(most=max(1, self.most // 2)), merge_text(present), spent)
        # With room to spare, else the next note would ask for the next merging.
        merged = read_merged(answer)[-max(1, min(left, self.most * 3 // 4)) :]
        if merged and not await self.notes.replace(scope, present, merged[-len(present) :]):
            log.info("notes were changed while they were merged", extra={"session": session.id})

    async def _ask(self, session: Session, system: str, text: str, spent: list[Usage]) -> str:
        """The answer; empty when there is none that can be used."""
        profile = self.model_for(session)
        request = ModelRequest(
            model=profile.model,
            max_tokens=min(MAX_ANSWER_TOKENS, profile.max_output_tokens),
            user_id=session.id,
            system=(text_block(system),),
            messages=(Message("user", (text_block(text),)),),
            purpose=Purpose.MEMORY,
        )
        try:
            async with asyncio.timeout(CALL_S):
                reply = await ask_aside(self.provider, request, spent)
        except Exception as error:
            log.warning("a call for notes failed: %s", type(error).__name__, extra={"session": session.id})
            return ""
        usable = reply.stop_reason == "end_turn" and not tool_uses(reply.content)
        return text_of(reply.content) if usable else ""


def _scope(session: Session) -> Scope:
    return scope_of(session.tenant, session.settings.metadata)
