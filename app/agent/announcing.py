"""Volatile system blocks that changed between epochs: the frozen preamble stays, and a note tells the model."""

from dataclasses import replace

from app.agent.turn import Turn
from app.context.note import digest, note
from app.conversation.run import NewMessage, Step
from app.middleware.chain import Call


async def announce(turn: Turn, call: Call) -> bool:
    """Appends a note that only the agent sees when the blocks are not what the model was last told; True when it did.

    Not where the preamble is read afresh anyway, nor before an answer that is continued.
    """
    preamble = call.ledger.preamble
    if call.fresh or preamble is None or call.continues:
        return False
    blocks = await call.desk.volatile(call.session_id)
    memo, now = turn.book.ledger.memo, digest(blocks)
    if now == (memo.announced or digest(preamble.system[preamble.stable :])):
        return False
    plan = turn.book.plan(replace(memo, announced=now))
    message = NewMessage(
        turn.bench.ids.new("msg"), "user", (note(preamble.system[preamble.stable :], blocks),), user_visible=False
    )
    await turn.log.write(Step(messages=(message,), state=plan.state))
    turn.book.turn_to(plan)
    call.draft.memo = turn.book.ledger.memo
    return True
