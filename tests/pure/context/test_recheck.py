"""Rules of a view that grows: whatever came before, nothing else is found than in the whole."""

from hypothesis import given, settings
from hypothesis import strategies as st

from app.context.recheck import UNCHECKED, recheck
from app.context.rules import violation
from app.conversation.messages import Message, text_block
from tests.pure.context.histories import answer, assistant, call_block, user


def batch(number: int) -> tuple[Message, Message]:
    return assistant(call_block(f"t{number}")), user(answer(f"t{number}"))


BROKEN = {
    "a repeated id": (assistant(call_block("t0")), user(answer("t0"))),
    "an illegal id": (assistant(call_block("no id")), user(answer("no id"))),
    "a missing result": (assistant(call_block("t90"), call_block("t91")), user(answer("t90"))),
    "a stray result": (assistant(call_block("t92")), user(answer("t92"), answer("t93"))),
    "a blank text": (assistant(text_block(" ")), user(text_block("x"))),
    "two of a role": (user(text_block("x")),),
    "an answer last": (assistant(text_block("x")),),
}


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["batch", "batch", "chat", *BROKEN]), max_size=12), st.booleans(), st.data())
def test_step_by_step_the_same_is_found_as_in_the_whole(kinds: list[str], head: bool, data: st.DataObject):
    messages: tuple[Message, ...] = (user(text_block("go")),)
    if head:
        messages = (user(text_block("head")), *messages)
    checked = UNCHECKED
    for number, kind in enumerate(kinds):
        chat = (assistant(text_block("so")), user(text_block("and?")))
        messages += BROKEN.get(kind) or (chat if kind == "chat" else batch(number))
        continues = data.draw(st.booleans())
        found, checked = recheck(checked, messages, continues, head)
        whole = violation(messages, continues, head)
        assert (found is None) == (whole is None)
        assert found is None or 0 <= found.message < len(messages)


def test_messages_that_were_found_legal_are_not_looked_at_again():
    messages = (user(text_block("go")), *batch(1), *batch(2))
    _, checked = recheck(UNCHECKED, messages, False, False)
    assert checked.messages == messages[:3]
    assert checked.ids == {"t1"}
    found, _ = recheck(checked, (*messages, *batch(1)), False, False)
    assert found == violation((*messages, *batch(1)))


def test_other_objects_are_checked_anew():
    messages = (user(text_block("go")), *batch(1), *batch(2))
    _, checked = recheck(UNCHECKED, messages, False, False)
    blank = (user(text_block(" ")), *messages[1:])
    assert recheck(checked, blank, False, False)[0] == violation(blank)
