"""Tool calls from fragments, as the servers of the field send them."""

import pytest

from app.providers.openai.calls import CUT, Calls


def fragment(arguments=None, name=None, **more):
    return {**more, "function": {"name": name, "arguments": arguments}}


def put_together(*chunks, cut: bool = False):
    calls = Calls()
    for fragments in chunks:
        list(calls.feed(fragments))
    blocks, broken = calls.close(cut)
    return [(block["id"], block["name"], block["input"]) for block in blocks], broken


ONE, TWO = ("a", "read", {"n": 1}), ("b", "read", {"n": 2})
FIRST = fragment('{"n":1}', "read", index=0, id="a")
SENT = {
    "in pieces": [
        [fragment("", "read", index=0, id="a")],
        [fragment('{"n"', index=0)],
        [fragment(":1}", index=0)],
        [fragment("", "read", index=1, id="b")],
        [fragment('{"n":2}', index=1)],
    ],
    "each whole in one chunk": [[FIRST], [fragment('{"n":2}', "read", index=1, id="b")]],
    "all in one chunk": [[FIRST, fragment('{"n":2}', "read", index=1, id="b")]],
    "pieces of two in turn": [
        [fragment('{"n"', "read", index=0, id="a")],
        [fragment('{"n":', "read", index=1, id="b")],
        [fragment(":1}", index=0)],
        [fragment("2}", index=1)],
    ],
    "one index for all": [
        [fragment('{"n"', "read", index=0, id="a")],
        [fragment(":1}", index=0)],
        [fragment('{"n":', "read", index=0, id="b")],
        [fragment("2}", index=0)],
    ],
    "no index": [
        [fragment('{"n"', "read", id="a")],
        [fragment(":1}", id=None)],
        [fragment('{"n":2}', "read", id="b")],
    ],
    "no index, both in one chunk": [[fragment('{"n":', "read", id="a"), fragment('{"n":', "read", id="b")],
                                    [fragment("1}"), fragment("2}")]],
    "null index and an id with every piece": [
        [fragment('{"n"', "read", index=None, id="a")],
        [fragment('{"n":2}', "read", index=None, id="b")],
        [fragment(":1}", index=None, id="a")],
    ],
    "the id comes late": [[fragment("", "read", index=0)], [fragment('{"n":1}', index=0, id="a")],
                          [fragment('{"n":2}', "read", index=1, id="b")]],
    "the name with every piece": [
        [fragment('{"n"', "read", index=0, id="a")],
        [fragment(":1}", "read", index=0, id="a")],
        [fragment('{"n":2}', "read", index=1, id="b")],
    ],
    "the name in pieces": [
        [fragment("", "re", index=0, id="a")],
        [fragment(None, "ad", index=0)],
        [fragment('{"n":1}', index=0)],
        [fragment('{"n":2}', "read", index=1, id="b")],
    ],
    "arguments before the name": [
        [fragment('{"n":', index=0, id="a")],
        [fragment("1}", "read", index=0)],
        [fragment('{"n":2}', "read", index=1, id="b")],
    ],
    "arguments as an object": [[fragment({"n": 1}, "read", index=0, id="a")], [fragment({"n": 2}, "read", id="b")]],
}  # fmt: skip


@pytest.mark.parametrize("chunks", SENT.values(), ids=SENT)
def test_two_calls_are_two_calls_however_they_are_sent(chunks):
    assert put_together(*chunks) == ([ONE, TWO], {})


@pytest.mark.parametrize("call_id", ["same", "", None])
@pytest.mark.parametrize("index", [{}, {"index": 0}, {"index": None}])
def test_whole_calls_stay_apart_without_any_id_of_their_own(call_id, index):
    first = fragment('{"n":1}', "read", id=call_id, **index)
    second = fragment('{"n":2}', "read", id=call_id, **index)
    found, broken = put_together([first], [second])
    assert [call[1:] for call in found] == [ONE[1:], TWO[1:]]
    assert not broken


def test_a_call_without_arguments_has_none():
    assert put_together([fragment("", "list", index=0, id="a")]) == ([("a", "list", {})], {})


@pytest.mark.parametrize("arguments", ['{"n":', "[1]", "null", '{"n":1}}', '{"n":NaN}', "rm -rf"])
def test_arguments_that_are_no_whole_object_are_never_used(arguments):
    [(_, _, given)], broken = put_together([fragment(arguments, "read", index=0, id="a")])
    assert given == {}
    assert set(broken) == {0}


@pytest.mark.parametrize("arguments", ['{"n":', ""])
def test_the_last_call_of_a_cut_answer_is_cut_the_others_are_not(arguments):
    last = fragment(arguments, "read", index=1, id="b")
    assert put_together([FIRST], [last], cut=True) == ([ONE, ("b", "read", {})], {1: CUT})


def test_fragments_that_fit_no_call_never_make_arguments_that_nobody_wrote():
    opened = [fragment('{"x":', "one", id="a"), fragment('{"y":', "two", id="b")]
    found, broken = put_together(opened, [fragment("2}")])
    assert [given for _, _, given in found] == [{}, {"y": 2}]
    assert set(broken) == {0}
