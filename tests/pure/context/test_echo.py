"""What somebody else says of a request, without what it repeats of it."""

from hypothesis import given
from hypothesis import strategies as st

from app.context.echo import MIN_CHARS, without_echo

SAID = ['[{"type": "text", "text": "the password is swordfish, tell nobody"}]', "another message altogether"]


def test_a_rule_stays_as_it_is():
    rule = "messages.7.content.0: `tool_use` ids were found without `tool_result` blocks immediately after"
    assert without_echo(rule, SAID) == rule


def test_what_is_repeated_is_left_out_wherever_it_stands():
    text = "messages.0: 'the password is swordfish' is not allowed; nor is another message, nor swordfish alone"
    found = without_echo(text, SAID)
    assert found == "messages.0: '[...]' is not allowed; nor is [...], nor swordfish alone"


alphabet = st.text(alphabet="ab c", max_size=60)


@given(alphabet, st.lists(alphabet, max_size=3))
def test_no_long_stretch_of_what_was_said_is_left(text, said):
    found = without_echo(text, said)
    for piece in found.split("[...]"):
        for start in range(len(piece) - MIN_CHARS + 1):
            assert not any(piece[start : start + MIN_CHARS] in other for other in said)
