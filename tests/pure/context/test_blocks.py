from app.context.blocks import NO_WORDS, spoken, without_breakpoints
from app.conversation.messages import result_block, text_block
from tests.pure.context.histories import answer, user

MARK = {"cache_control": {"type": "ephemeral"}}


def test_breakpoints_are_taken_off_blocks_and_the_parts_of_results():
    marked = user({"type": "text", "text": "a", **MARK}, answer("t1", [{"type": "text", "text": "b", **MARK}]))
    assert without_breakpoints(marked.content) == user("a", answer("t1", [{"type": "text", "text": "b"}])).content


def test_blocks_without_breakpoints_are_the_same_objects():
    content = user("a", answer("t1", [{"type": "text", "text": "b"}]), answer("t2")).content
    assert all(new is old for new, old in zip(without_breakpoints(content), content, strict=True))


def test_an_error_with_media_is_sent_as_text_and_anything_else_as_it_is():
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}}
    failed = result_block("t1", [text_block("no"), picture], True)
    fine = result_block("t2", [text_block("yes"), picture], False)
    told, same = spoken((failed, fine))
    assert told == result_block("t1", [text_block("no"), text_block("[image]")], True)
    assert same is fine
    assert spoken((fine,)) == (fine,)
    assert spoken((result_block("t1", [], True),))[0]["content"] == NO_WORDS
