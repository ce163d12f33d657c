"""The view: the message list of one request, rendered from stored rows by an ordered list of pure passes.

1. `visible`: rows the agent sees.
2. `tidied`: blocks the provider refuses anywhere go first, since what is left decides all that follows. A user row left
   with nothing gets a placeholder, so that it keeps its place between two answers; so does an error without words.
3. `joined`: rows are one per event, messages alternate. Neighbours join before hollow messages are looked for, since
   the thinking of a paused turn belongs to the row that continues it.
4. `solid`: an assistant message of thinking alone (or nothing) goes; its neighbours are users', so `joined` runs again.
5. `opened`: a leading assistant message gets a user placeholder before it: dropping it would lose its words.
6. `settled`: only now is "the very next message" known: calls behind text; results first, in call order, errors for
   missing ones, strays left out.
7. `distinct`: last, because results follow their calls by position: ids that are illegal or used before are replaced.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, count, groupby
from operator import attrgetter

from app.context.batches import settle
from app.context.blocks import calls_last, is_hollow, spoken, tidy
from app.context.mint import mint_messages
from app.context.rules import call_ids_legal, roles_alternate
from app.conversation.messages import Block, Content, Message, StoredMessage, text_block, tool_uses

EMPTY = text_block("(empty message)")
BEGINNING = text_block("(the conversation begins)")


def render_view(rows: Sequence[StoredMessage], continues: bool = False) -> tuple[Message, ...]:
    """The messages of the next request. Unchanged blocks are the stored objects; rows are never changed.

    `continues`: the last row is an assistant one to be continued (pause_turn), so it stays even with thinking alone.
    Without a user row at the end the view ends with an assistant message, which the validator refuses.
    """
    return tuple(numbered(opened(merged(visible(rows), continues))))


def merged(messages: Iterable[Message], continues: bool) -> list[Message]:
    """Passes 2 to 4: alternating messages of blocks that are legal by themselves."""
    return joined(solid(joined(tidied(messages)), continues))


def numbered(messages: Iterable[Message]) -> list[Message]:
    """Passes 6 and 7: calls and results pairwise, under ids of their own."""
    return distinct(settled(messages))


def visible(rows: Iterable[StoredMessage]) -> list[Message]:
    return [Message(row.role, row.content) for row in rows if row.agent_visible]


def tidied(messages: Iterable[Message]) -> list[Message]:
    return [_with(message, spoken(tidy(message.role, message.content)) or _nothing(message)) for message in messages]


def _nothing(message: Message) -> Content:
    return (EMPTY,) if message.role == "user" else ()


def joined(messages: list[Message]) -> list[Message]:
    if roles_alternate(messages) is None:
        return messages
    return [_joined(list(group)) for _, group in groupby(messages, key=attrgetter("role"))]


def _joined(group: Sequence[Message]) -> Message:
    first, *more = group
    return Message(first.role, tuple(chain.from_iterable(m.content for m in group))) if more else first


def solid(messages: Sequence[Message], continues: bool) -> list[Message]:
    last = messages[-1] if continues and messages and messages[-1].content else None
    return [m for m in messages if m is last or m.role == "user" or not is_hollow(m.content)]


def opened(messages: list[Message]) -> list[Message]:
    leads = bool(messages) and messages[0].role == "assistant"
    return [Message("user", (BEGINNING,)), *messages] if leads else messages


def settled(messages: Iterable[Message]) -> list[Message]:
    out: list[Message] = []
    calls: list[Block] = []
    for message in messages:
        if message.role == "assistant":
            out.append(_with(message, calls_last(message.content)))
            calls = tool_uses(message.content)
        else:
            out.append(_with(message, settle(calls, message.content) or (EMPTY,)))
    return out


def distinct(messages: list[Message]) -> list[Message]:
    if call_ids_legal(messages) is None:
        return messages
    taken = {block.get("id") for message in messages for block in tool_uses(message.content)}
    fresh = (name for name in map("view_call_{}".format, count(1)) if name not in taken)
    return mint_messages(messages, fresh.__next__)


def _with(message: Message, content: Content) -> Message:
    return message if content is message.content else Message(message.role, content)
