"""What of an answer may run, and under which ids."""

from app.agent.results import failed
from app.agent.turn import Turn
from app.context.markers import holds_sentinel
from app.context.mint import fit_names, mint_ids
from app.conversation.messages import Content, tool_uses
from app.conversation.reply import Reply
from app.conversation.run import CallState, ToolCall


def calls_of(reply: Reply, mark: str) -> tuple[ToolCall, ...]:
    """The calls of an answer. One that may not run is answered in the step that stores it: a crash cannot run it.

    `mark`: the sentinel of shortened texts; a call that copied one would write it in the place of the real text.
    """
    calls: list[ToolCall] = []
    for position, block in enumerate(reply.content):
        if block["type"] == "tool_use":
            call = ToolCall(0, len(calls), block["id"], block["name"], CallState.PENDING)
            reason = _refusal(position, reply, mark)
            calls.append(failed(call, reason) if reason else call)
    return tuple(calls)


def _refusal(position: int, reply: Reply, mark: str) -> str | None:
    if position in reply.broken:
        return (
            f"Not run: the arguments are unusable ({reply.broken[position]}). Send the call again, in smaller pieces."
        )
    if reply.stop_reason != "tool_use":
        return f"Not run: the answer ended with stop reason {reply.stop_reason}. Repeat the call if it is still needed."
    if holds_sentinel(reply.content[position]["input"], mark):
        return "Not run: the arguments hold the marker of a shortened text. Read the full text from its file first."
    return None


async def minted(turn: Turn, content: Content) -> Content:
    """Ids that the provider would refuse or the session has used get fresh ones before anything is stored or run; and
    names that it would refuse in every later request are made legal."""
    ids = [str(use.get("id", "")) for use in tool_uses(content)]
    used = await turn.bench.transcript.used_ids(turn.session.id, ids) if ids else frozenset()
    return mint_ids(fit_names(content), used, lambda: turn.bench.ids.new("toolu"))[0]
