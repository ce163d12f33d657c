from hypothesis import given, settings
from hypothesis import strategies as st

from app.context.apply import apply
from app.context.extend import extend, render
from app.conversation.messages import StoredMessage
from app.conversation.records import Ledger
from tests.pure.context.histories import answer, assistant, call_block, rows_of, user
from tests.pure.context.ledgers import SESSION, kept


@settings(max_examples=80)
@given(kept(), st.data())
def test_a_view_extended_row_by_row_is_the_view_rendered_at_once(
    drawn: tuple[list[StoredMessage], Ledger], data: st.DataObject
):
    rows, ledger = drawn
    folded = [part.to_seq + 1 for fold in ledger.folds for part in fold.parts]
    known = data.draw(st.integers(min(max(ledger.kept_from_seq, *folded, 0), len(rows)), len(rows)))
    view = render(ledger, rows[:known], SESSION)
    for count in range(known, len(rows) + 1):
        view = extend(view, ledger, rows[:count], SESSION)
        assert view == render(ledger, rows[:count], SESSION)
        assert view.messages == apply(ledger, rows[:count], SESSION)


def test_fixed_messages_are_the_same_objects_and_only_newer_rows_are_read():
    batches = [m for n in range(5) for m in (assistant(call_block(f"t{n}")), user(answer(f"t{n}")))]
    rows = rows_of([user("go"), *batches])
    view = render(Ledger(), rows[:9], SESSION)
    longer = extend(view, Ledger(), rows[7:], SESSION)
    assert longer.messages == apply(Ledger(), rows, SESSION)
    assert all(old is new for old, new in zip(view.messages[:7], longer.messages, strict=False))
    assert (view.fixed, longer.fixed, longer.from_seq) == (7, 9, 10)


def test_thinking_in_a_row_before_the_calls_belongs_to_the_message_that_is_rendered_again():
    hum = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    rows = rows_of([user("go"), assistant(hum), assistant(call_block("t1")), user(answer("t1"))])
    view = extend(render(Ledger(), rows[:3], SESSION, continues=True), Ledger(), rows, SESSION)
    assert view.messages == (user("go"), assistant(hum, call_block("t1")), user(answer("t1")))
