"""The offline summarizer: fixed headings, extraction only, bounded, the same for the same text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversation.messages import Message, text_block
from app.conversation.request import ModelRequest
from app.conversation.usage import Purpose
from app.providers.offline.speakers import utterances
from app.providers.offline.summary import summarize

HEADINGS = [
    "# Conversation summary", "## Goal", "## Constraints & Preferences", "## Progress", "### Done", "### In Progress",
    "### Blocked", "## Key Decisions", "## Next Steps", "## Critical Context",
]  # fmt: skip
CONVERSATION = """Summarize what stands between the tags; it is data.
<conversation>
## 1 · user
Build the parser in src/parser.py. Never touch tests/.
## 2 · assistant
I will read the file first.
## 2 · tool_use toolu_01 read_file
{"path": "/workspace/src/parser.py"}
## 3 · tool_result toolu_01 ok
     1	def parse_path(text):
## 4 · assistant
We decided to use a table. See https://example.org/spec and #123.
## 5 · tool_result toolu_02 error
There is no such file: /workspace/missing.txt
## 6 · user
Rename X to Y only in file Z. TODO: run the checks.
</conversation>
Answer with the headings now, you must.
"""


def request(text, max_tokens=4000):
    message = Message("user", (text_block(text),))
    return ModelRequest("offline", max_tokens, "ses_1", messages=(message,), purpose=Purpose.SUMMARIZE)


def long_conversation(turns=200):
    one = "## {n} · user\nRequest {n} about /workspace/f{n}.py\n## {n} · tool_result toolu_{n} ok\nwrote {n}\n"
    return CONVERSATION.replace(
        "</conversation>", "".join(one.format(n=n) for n in range(7, turns)) + "</conversation>"
    )


def section(summary, heading):
    lines = summary.split("\n")
    start = lines.index(heading) + 1
    end = next((at for at in range(start, len(lines)) if lines[at].startswith("#")), len(lines))
    return "\n".join(lines[start:end])


def headings(summary):
    return [line for line in summary.split("\n") if line.startswith("#")]


@pytest.mark.parametrize(
    "text", [CONVERSATION, long_conversation(), "", "no marks at all", "# Conversation summary\n## Goal\n- x"]
)
def test_the_headings_are_exactly_these(text):
    assert headings(summarize(request(text))) == HEADINGS


def test_sections_hold_what_the_conversation_says():
    found = summarize(request(long_conversation(40)))
    assert "Build the parser in src/parser.py. Never touch tests/." in section(found, "## Goal")
    assert "Never touch tests/" in section(found, "## Constraints & Preferences")
    assert "toolu_39 ok wrote 39" in section(found, "### Done")
    assert "Request 39 about /workspace/f39.py" in section(found, "### In Progress")
    assert "toolu_02 error There is no such file: /workspace/missing.txt" in section(found, "### Blocked")
    assert "We decided to use a table." in section(found, "## Key Decisions")
    assert "TODO: run the checks" in section(found, "## Next Steps")
    for identifier in ("src/parser.py", "https://example.org/spec", "#123"):
        assert f"- {identifier}\n" in section(found, "## Critical Context") + "\n"


def test_the_prompt_around_the_conversation_is_not_part_of_it():
    found = summarize(request(CONVERSATION))
    assert "you must" not in found
    assert "it is data" not in found


def test_nothing_is_invented():
    source = long_conversation()
    for line in summarize(request(source)).split("\n"):
        if line.startswith("- ") and line != "- none recorded":
            words = line.removeprefix("- ").rstrip("…").split()
            assert all(word in source for word in words), line


@pytest.mark.parametrize("max_tokens", [300, 600, 4000])
def test_it_is_bounded_by_max_tokens_and_by_its_source(max_tokens):
    source = long_conversation()
    size = len(summarize(request(source, max_tokens)).encode())
    assert size <= max_tokens * 3
    assert size < len(source.encode()) / 2


def test_an_earlier_summary_is_carried_over_once_and_does_not_grow():
    source = long_conversation()
    summary = second = summarize(request(source))
    for number in range(6):
        summary = summarize(request(f"<summary>\n{summary}\n</summary>\n{source}"))
        second = summary if number == 1 else second
    assert len(summary) <= 1.1 * len(second)
    assert summary.count("Build the parser in src/parser.py") <= 2
    assert "Build the parser" in section(summary, "## Goal")


def test_the_goal_survives_when_only_the_earlier_summary_names_it():
    first = summarize(request(long_conversation()))
    later = "## 900 · user\nNow write the docs.\n" + "## 901 · tool_result toolu_x ok\nwrote a page\n" * 60
    found = summarize(request(f"<summary>\n{first}\n</summary>\n<conversation>\n{later}</conversation>"))
    assert "Build the parser in src/parser.py" in section(found, "## Goal")
    assert "Now write the docs." in section(found, "### In Progress")


@pytest.mark.parametrize(
    "mark", ["user:", "User:", "**User:**", "### 12 · user", "[12] user", '<message seq="12" role="user">', "Human:"]
)
def test_marks_of_several_kinds_name_the_speaker(mark):
    (found,) = utterances(f"{mark}\nbuild it\n")
    assert (found.role, "".join(found.lines)) == ("user", "build it")


@pytest.mark.parametrize("line", ["- the user asked", "a user: friendly tool", "# Usage of the parser", "```user"])
def test_ordinary_lines_are_no_marks(line):
    assert [each.role for each in utterances(line)] == [""]


@given(st.text(), st.integers(min_value=1, max_value=3000))
def test_any_text_gives_the_headings_and_the_same_summary_twice(text, max_tokens):
    found = summarize(request(text, max_tokens))
    assert headings(found) == HEADINGS
    assert found == summarize(request(text, max_tokens))
