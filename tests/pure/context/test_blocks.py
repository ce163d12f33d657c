from app.context.blocks import without_breakpoints
from tests.pure.context.histories import answer, user

MARK = {"cache_control": {"type": "ephemeral"}}


def test_breakpoints_are_taken_off_blocks_and_the_parts_of_results():
    marked = user({"type": "text", "text": "a", **MARK}, answer("t1", [{"type": "text", "text": "b", **MARK}]))
    assert without_breakpoints(marked.content) == user("a", answer("t1", [{"type": "text", "text": "b"}])).content


def test_blocks_without_breakpoints_are_the_same_objects():
    content = user("a", answer("t1", [{"type": "text", "text": "b"}]), answer("t2")).content
    assert all(new is old for new, old in zip(without_breakpoints(content), content, strict=True))
