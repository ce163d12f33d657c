"""The ledger of a run at work, and the private state that stores it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from app.context.apply import apply
from app.context.extend import View, extend, render
from app.context.ledger import preamble_key, private_state, with_epoch
from app.conversation.messages import Content, Message, StoredMessage
from app.conversation.records import Cut, Epoch, Ledger, Memo, Pair, Reason
from app.conversation.request import ToolDefinition


@dataclass(frozen=True, slots=True)
class Plan:
    """A ledger that is not true yet, and the run's state that makes it so."""

    ledger: Ledger
    epoch: Epoch | None
    state: Mapping[str, Any]


class Book:
    """`ledger` changes only when what it says is stored: `plan` gives the state to store, `turn_to` makes it true.

    `made`: the epochs of this owner. `compactions`: summaries and truncations of the whole run. `counted_at`: the
    measure at which a counter was last asked, 0 since an epoch. `estimated`: measure of the newest request, 0 where
    usage tells it. `compacted`: the next request to leave is the first after a cut. `warned`, `ignored`: what readers
    were, or are to be, told once. `trace_id`: where the run is traced, None where it is not.
    """

    def __init__(self, ledger: Ledger, run_id: str, state: Mapping[str, Any]) -> None:
        self.ledger = ledger
        self.made: tuple[Epoch, ...] = ()
        self.compactions = int(state.get("compactions", 0))
        self.counted_at = 0
        self.estimated = int(state.get("estimated", 0))
        self.compacted = _unsent(ledger)
        self.warned: set[str] = set()
        self.ignored: list[str] = []
        self.trace_id: str | None = state.get("trace_id")
        self._stored_trace_id = self.trace_id
        self._run_id = run_id
        self._private: Mapping[str, Any] | None = state.get("private")
        self._tool_done = False
        self._key: tuple[Content, tuple[ToolDefinition, ...], str] | None = None
        self._view: tuple[Ledger, View] | None = None

    def key(self, model: str, system: Content, declared: tuple[ToolDefinition, ...]) -> str:
        """`preamble_key`, computed again only for other objects."""
        if self._key is None or self._key[0] is not system or self._key[1] is not declared:
            self._key = (system, declared, preamble_key(model, system, declared))
        return self._key[2]

    def plan(
        self,
        memo: Memo,
        epoch: Epoch | None = None,
        force: Mapping[str, Any] | None = None,
        estimated: int | None = None,
    ) -> Plan:
        """The ledger with this memo and epoch. `force` is cleared by every call, whatever its outcome; `estimated` None
        leaves what there is."""
        ledger = replace(self.ledger, memo=memo, force=force, written=self.ledger.written + 1)
        if epoch is not None:
            ledger = with_epoch(ledger, epoch, self._run_id)
        made = sum(isinstance(record, Cut) for record in epoch.records) if epoch else 0
        private = private_state(ledger, self._run_id, self._private, epoch)
        estimated = self.estimated if estimated is None else estimated
        return Plan(ledger, epoch, self._state(private, self.compactions + made, estimated))

    def _state(self, private: Mapping[str, Any], compactions: int, estimated: int) -> dict[str, Any]:
        told = {"estimated": estimated} if estimated else {}
        return {"private": private, "compactions": compactions, **told, **self._traced()}

    def _traced(self) -> Mapping[str, Any]:
        return {"trace_id": self.trace_id} if self.trace_id else {}

    def prepare(self, pairs: Sequence[Pair]) -> Plan:
        """The ledger with these summaries of old batches, for the next epoch to show."""
        ledger = replace(self.ledger, pairs=(*self.ledger.pairs, *pairs), written=self.ledger.written + 1)
        private = private_state(ledger, self._run_id, self._private)
        return Plan(ledger, None, self._state(private, self.compactions, self.estimated))

    def turn_to(self, plan: Plan) -> None:
        self._tool_done = self._tool_done or (self.ledger.force is not None and plan.ledger.force is None)
        self.ledger, self._private = plan.ledger, plan.state["private"]
        self.compactions = plan.state["compactions"]
        self.estimated = plan.state.get("estimated", 0)
        self._stored_trace_id = plan.state.get("trace_id")
        if plan.epoch is not None:
            self.made = (*self.made, plan.epoch)
            self.counted_at = 0
            self.compacted = self.compacted or any(isinstance(record, Cut) for record in plan.epoch.records)

    @property
    def sent_tools(self) -> tuple[ToolDefinition, ...]:
        return self.ledger.preamble.tools if self.ledger.preamble else ()

    @property
    def state(self) -> Mapping[str, Any]:
        """As it is stored, or will be by the next plan."""
        return self._state(self._private, self.compactions, self.estimated) if self._private else self._traced()

    @property
    def unstored_state(self) -> Mapping[str, Any] | None:
        """For the last step of a run that stored no plan since its trace began; None when all is stored."""
        return None if self._stored_trace_id == self.trace_id else self.state

    @property
    def tool_asked(self) -> Literal["", "asked", "done"]:
        """Whether the model has asked for a compaction in this turn: asked, done (or declined), or not at all."""
        if self.ledger.force is not None:
            return "asked"
        return "done" if self._tool_done else ""

    def view(self, rows: Sequence[StoredMessage], session_id: str, continues: bool) -> tuple[Message, ...]:
        """The view of the stored ledger; rendered whole once per epoch, extended from call to call."""
        if continues:
            return apply(self.ledger, rows, session_id, continues)
        if self._view is not None and _same_records(self._view[0], self.ledger):
            view = extend(self._view[1], self.ledger, rows, session_id)
        else:
            view = render(self.ledger, rows, session_id)
        self._view = (self.ledger, view)
        return view.messages


def _unsent(ledger: Ledger) -> bool:
    """A compaction by hand sends nothing itself. A request that was accepted since has left an anchor."""
    return ledger.cut is not None and ledger.cut.reason is Reason.MANUAL and ledger.memo.anchor is None


def _same_records(one: Ledger, other: Ledger) -> bool:
    """Only numbers differ, so the views are the same."""
    return one is other or (one.shapings, one.folds, one.cut, one.summary, one.strip_thinking_to_seq) == (
        other.shapings,
        other.folds,
        other.cut,
        other.summary,
        other.strip_thinking_to_seq,
    )
