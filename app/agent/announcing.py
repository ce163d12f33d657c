"""Skills and volatile system blocks that changed between epochs: the frozen preamble stays, a note tells the model."""

from dataclasses import replace

from app.agent.turn import Turn
from app.context.note import digest, note
from app.context.skills import is_listing
from app.conversation.run import NewMessage, Step
from app.middleware.chain import Call


async def announce(turn: Turn, call: Call) -> bool:
    """Appends a note that only the agent sees when the blocks are not what the model was last told; True when it did.

    Not where the preamble is read afresh anyway, nor before an answer that is continued.
    """
    preamble = call.ledger.preamble
    if call.fresh or preamble is None or call.continues:
        return False
    blocks = (*await call.desk.skills(), *await call.desk.volatile(call.session_id))
    listed = filter(is_listing, preamble.system[: preamble.stable])
    sent = (*listed, *preamble.system[preamble.stable :])
    memo, now = turn.book.ledger.memo, digest(blocks)
    if now == (memo.announced or digest(sent)):
        return False
    plan = turn.book.plan(replace(memo, announced=now))
    message = NewMessage(turn.bench.ids.new("msg"), "user", (note(sent, blocks),), user_visible=False)
    await turn.log.write(Step(messages=(message,), state=plan.state))
    turn.book.turn_to(plan)
    call.draft.memo = turn.book.ledger.memo
    return True
