"""Front matter: read as every YAML reader would, or refused by rule; and the block that lists skills."""

import pytest

from app.context.ledger import preamble_key
from app.context.skills import body_of, is_listing, listing, parse_skill
from app.conversation.messages import text_block
from app.conversation.skills import Skill


def skill_file(*lines: str, body: str = "Do it.\n") -> str:
    return "\n".join(["---", *lines, "---", body])


NAME = "name: a-1"


@pytest.mark.parametrize(
    ("lines", "description"),
    [
        ((NAME, "description: Plain text, with 'quotes' inside"), "Plain text, with 'quotes' inside"),
        ((NAME, 'description: "a: b # c"'), "a: b # c"),
        ((NAME, "description: 'it''s: so'"), "it's: so"),
        ((NAME, "# a comment", "", "description:   spaced  "), "spaced"),
        (("license: MIT", NAME, "metadata:", "  deep:", "    - 1", "- 2", "description: x"), "x"),
        ((NAME, "allowed-tools: [a, b]", "description: 漢字 https://a.test/x"), "漢字 https://a.test/x"),
    ],
)
def test_what_is_read(lines: tuple[str, ...], description: str):
    assert parse_skill(skill_file(*lines), "a-1") == Skill("a-1", description)
    assert parse_skill("\ufeff" + skill_file(*lines).replace("\n", "\r\n"), "a-1") == Skill("a-1", description)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "between two lines"),
        ("name: a-1\n", "between two lines"),
        ("---\nname: a-1\ndescription: x\n", "between two lines"),
        ("\n" + skill_file(NAME, "description: x"), "between two lines"),
        (skill_file("description: x"), "name must be that of its folder"),
        (skill_file("name: b", "description: x"), "name must be that of its folder"),
        (skill_file(NAME), "description must be"),
        (skill_file(NAME, "description:"), "description must be"),
        (skill_file(NAME, 'description: ""'), "description must be"),
        (skill_file(NAME, f"description: {'x' * 1025}"), "description must be"),
        (skill_file(NAME, "description: a\tb"), "description must be"),
        (skill_file(NAME, "description: a: b"), "line 3: description must be one line"),
        (skill_file(NAME, "description: a #b"), "line 3: description must be one line"),
        (skill_file(NAME, "description: >"), "line 3: description must be one line"),
        (skill_file(NAME, "description: |", "  more"), "line 3: description must be one line"),
        (skill_file(NAME, "description: [a]"), "line 3: description must be one line"),
        (skill_file(NAME, 'description: "a'), "line 3: description must be one line"),
        (skill_file(NAME, r'description: "a\n"'), "line 3: a text in"),
        (skill_file(NAME, "description: x", "  more"), "line 4 must be"),
        (skill_file(NAME, NAME, "description: x"), "line 3 must be"),
        (skill_file(NAME, "description:x"), "line 3 must be"),
        (skill_file(NAME, "just words"), "line 3 must be"),
    ],
)
def test_what_is_refused_and_by_which_rule(text: str, rule: str):
    with pytest.raises(ValueError, match=rule):
        parse_skill(text, "a-1")


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a--b", "a.b", "x" * 65])
def test_a_name_is_one_that_every_file_system_and_model_takes(name: str):
    with pytest.raises(ValueError, match="name must be"):
        parse_skill(skill_file(f"name: {name}", "description: x"), name)


def test_the_body_is_what_stands_behind():
    assert body_of(skill_file(NAME, "description: x", body="\n# Title\n---\nend\n\n")) == "# Title\n---\nend"
    assert body_of("no front matter") == "no front matter"


def test_the_listing_cannot_be_ended_by_a_description():
    [block] = listing([Skill("a", "x</skills> y"), Skill("b", "z")])
    assert block["text"].count("</skills>") == 1
    assert is_listing(block)
    assert not is_listing(text_block("Be exact."))
    assert listing([]) == ()


def test_the_list_of_skills_is_no_part_of_what_the_user_can_change():
    own = (text_block("Be exact."),)
    keys = {preamble_key("m", (*own, *listing([Skill("a", x)])), ()) for x in ("one", "two")}
    assert keys == {preamble_key("m", own, ())}
