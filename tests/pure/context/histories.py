"""Random transcripts as they come from models, imports and crashes: everything the surgery must be able to take."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from app.context.batches import match
from app.context.view import merged, visible
from app.conversation.messages import Block, Content, Message, Role, StoredMessage, result_block, text_block, tool_uses

AT = datetime(2026, 1, 1, tzinfo=UTC)
BLANKS = ("", " ", "\n\t ")
# Few ids, so that they repeat and meet by chance; some that the provider would refuse.
IDS = ("t1", "t2", "t3", "t4", "toolu_A-9", "", "../../x", "a" * 65, "t 1")

words = st.sampled_from(("go on", "rename X to Y only in file Z", "漢字かな", "chào bạn", "🙂", "  padded  "))
texts = st.builds(text_block, st.one_of(words, words, st.sampled_from(BLANKS)))
images = st.just({"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}})
thinking = st.sampled_from(
    (
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "thinking", "thinking": "cut"},
        {"type": "redacted_thinking", "data": "AAAA"},
    )
)
calls = st.builds(lambda call_id: call_block(call_id), st.sampled_from(IDS))
outputs: st.SearchStrategy[str | list[Block]] = st.one_of(
    st.sampled_from(("", "ok", "error: no such file")), st.lists(st.one_of(texts, images), max_size=3)
)
results = st.builds(result_block, st.sampled_from(IDS), outputs, st.booleans())

user_contents = st.lists(st.one_of(texts, images, results, results), max_size=5).map(tuple)
assistant_contents = st.lists(st.one_of(texts, thinking, calls, calls), max_size=5).map(tuple)


def call_block(call_id: str, name: str = "read_file") -> Block:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"path": "/workspace/a"}}


@st.composite
def answers(draw: st.DrawFn, content: Content) -> Content:
    """A user message that answers most of an assistant message's calls, in any order, with other blocks around."""
    ids = [block["id"] for block in content if block["type"] == "tool_use"]
    given = [result_block(call_id, draw(outputs), draw(st.booleans())) for call_id in ids if draw(st.integers(0, 4))]
    others = draw(st.lists(st.one_of(texts, images, results), max_size=2))
    return tuple(draw(st.permutations([*given, *others])) if draw(st.booleans()) else [*given, *others])


@st.composite
def messages(draw: st.DrawFn, max_size: int = 10) -> list[Message]:
    """Any messages at all; half of the user ones try to answer what came before."""
    out: list[Message] = []
    for _ in range(draw(st.integers(0, max_size))):
        if draw(st.booleans()):
            out.append(Message("assistant", draw(assistant_contents)))
        elif out and out[-1].role == "assistant" and draw(st.booleans()):
            out.append(Message("user", draw(answers(out[-1].content))))
        else:
            out.append(Message("user", draw(user_contents)))
    return out


def row(seq: int, role: Role, content: Content, agent_visible: bool = True) -> StoredMessage:
    return StoredMessage(f"msg_{seq}", seq, "run_1", role, content, None, None, True, agent_visible, AT)


def rows_of(transcript: Sequence[Message]) -> list[StoredMessage]:
    return [row(seq, message.role, message.content) for seq, message in enumerate(transcript, 1)]


@st.composite
def histories(draw: st.DrawFn) -> list[StoredMessage]:
    """Stored rows, some hidden from the agent, the newest a user's request."""
    rows = [
        row(seq, message.role, message.content, agent_visible=draw(st.integers(0, 9)) > 0)
        for seq, message in enumerate(draw(messages()), 1)
    ]
    return [*rows, row(len(rows) + 1, "user", (text_block("and now this"),))]


def stray_results(rows: Sequence[StoredMessage]) -> int:
    """How many results the view leaves out because no call right before them asks for one."""
    messages = [Message("assistant", ()), *merged(visible(rows), False)]
    return sum(len(match(tool_uses(before.content), after.content)[1]) for before, after in pairwise(messages))


def serialized(values: Sequence[StoredMessage | Message]) -> list[str]:
    return [json.dumps(list(value.content), ensure_ascii=False) for value in values]


def user(*content: Block | str) -> Message:
    return Message("user", _blocks(content))


def assistant(*content: Block | str) -> Message:
    return Message("assistant", _blocks(content))


def _blocks(content: Sequence[Any]) -> Content:
    return tuple(text_block(block) if isinstance(block, str) else block for block in content)


def answer(call_id: str, content: str | list[Block] = "ok", is_error: bool = False) -> Block:
    return result_block(call_id, content, is_error)
