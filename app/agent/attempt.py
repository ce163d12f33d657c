"""One attempt at a model call, and what it leaves when nothing came of it."""

from dataclasses import dataclass, field

from app.agent.epochs import declined_events
from app.agent.turn import Turn
from app.conversation.reply import Reply
from app.conversation.request import ModelRequest
from app.conversation.run import Step
from app.conversation.usage import Purpose, Usage, UsageByPurpose, add_usage
from app.middleware.chain import Call


@dataclass(slots=True)
class Attempt:
    """`request`: as it left. `usages`: of each try of the provider. `reply`: an answer that the window cut."""

    call: Call | None = None
    request: ModelRequest | None = None
    usages: list[Usage] = field(default_factory=list)
    reply: Reply | None = None

    @property
    def spent(self) -> Usage:
        """The last usage is the reply's, where there is one; the others had failed, but were paid for too."""
        if self.reply is None:
            return sum(self.usages, Usage())
        return sum(self.usages[:-1], self.reply.usage)


async def leave(turn: Turn, attempt: Attempt, failed: bool) -> None:
    """Stores what was spent, what the tiers declined, and (`failed`) that an asked-for compaction was tried.

    A call that was only broken off is made again by the run's next owner.
    """
    call, book = attempt.call, turn.book
    force = None if failed else book.ledger.force
    events = declined_events(call) if call else ()
    memo = call.draft.memo if call else book.ledger.memo
    usage = _usage(turn, attempt)
    if not events and usage is None and memo == book.ledger.memo and book.ledger.force == force:
        return
    plan = book.plan(memo, force=force)
    await turn.log.write(Step(events=events, usage=usage, state=plan.state))
    book.turn_to(plan)
    if call:
        call.draft.usage = Usage()
        call.draft.declined.clear()


def _usage(turn: Turn, attempt: Attempt) -> UsageByPurpose | None:
    summarizer = attempt.call.draft.usage if attempt.call else Usage()
    if attempt.spent == summarizer == Usage():
        return None
    totals = turn.log.usage
    for purpose, usage in ((Purpose.MAIN, attempt.spent), (Purpose.SUMMARIZE, summarizer)):
        totals = add_usage(totals, purpose, usage) if usage != Usage() else totals
    return totals
