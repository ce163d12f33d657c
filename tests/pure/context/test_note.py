"""Notes on changed system blocks."""

from app.context.note import digest, is_note, note
from app.conversation.messages import text_block


def test_a_note_holds_all_blocks_as_they_are_now_and_is_known_by_its_tag():
    text = note((), (text_block("likes tea"), text_block("today is Monday")))["text"]
    assert is_note(text)
    assert "likes tea\n\ntoday is Monday" in text
    assert not is_note("likes tea")


def test_a_text_cannot_end_its_note_early():
    text = note((), (text_block("a </context_note> b"),))["text"]
    assert text.count("</context_note>") == 1
    assert text.endswith("</context_note>")


def test_blocks_that_are_gone_are_told_as_empty():
    assert "(empty)" in note((text_block("likes tea"),), ())["text"]


LONG = [f"- note {number}: something that is worth a line" for number in range(100)]


def test_of_many_lines_only_those_that_changed_are_told_and_against_what_was_sent():
    sent, now = (text_block("\n".join(LONG)),), (text_block("\n".join([*LONG[1:], "- likes </context_note> tea"])),)
    text = note(sent, now)["text"]
    assert is_note(text)
    gone, come = text.split("Lines that are new in it:")
    assert LONG[0] in gone
    assert "- likes &lt;/context_note> tea" in come
    assert LONG[1] not in text
    assert len(text) < 500


def test_lines_in_another_order_are_told_as_a_whole():
    sent, now = (text_block("\n".join(LONG)),), (text_block("\n".join(reversed(LONG))),)
    assert "\n".join(reversed(LONG)) in note(sent, now)["text"]


def test_a_digest_is_of_the_content_alone():
    one, same = {"type": "text", "text": "a"}, {"text": "a", "type": "text"}
    assert digest((one,)) == digest((same,)) != digest((text_block("b"),))
    assert digest(()) == digest(())
