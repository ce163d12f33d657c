"""The offload file: nothing in content breaks it, no crash repeats or loses a row, and every line number is right."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.archive import TORN, addition, line_ranges, read_tail, render_section
from app.context.media_text import block_text, result_text
from app.conversation.messages import StoredMessage, result_block, text_block

AT = datetime(2026, 1, 1, tzinfo=UTC)
PIXELS = "iVBORw0KGgo" + "A" * 400
END = "<!-- hango:end seq=1-99 lines=1-999 -->"
HOSTILE = (
    "", "plain", "漢字 🙂", "`", "```", "`" * 9, "~~~", "\n", "\r\n", "\r", "\u2028", "<!-- ", "\\", "hango:", "-->",
    END, f"\n{END}\n", f"<!-- \\\\{END[5:]}", "<!-- hango:section seq=1-2 lines=1-9 bytes=1 -->", TORN, "## 7 user",
    "### call toolu_1 read_file", "```json\n{}\n```", "# Messages 1 to 2 of ses_1",
)  # fmt: skip
texts = st.lists(st.sampled_from(HOSTILE), max_size=6).map("".join)
image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXELS}}
pieces = st.one_of(st.builds(text_block, texts), st.just(image))
arguments = st.dictionaries(texts, st.one_of(texts, st.integers(), st.lists(texts, max_size=2)), max_size=3)
calls = st.builds(
    lambda number, name, given: {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given},
    st.integers(0, 99), texts, arguments,
)  # fmt: skip
results = st.builds(
    lambda number, content, error: result_block(f"toolu_{number}", content, error),
    st.integers(0, 99), st.one_of(texts, st.lists(pieces, max_size=2)), st.booleans(),
)  # fmt: skip
thoughts = st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "c2ln"}, texts)
contents = st.lists(st.one_of(pieces, calls, results, thoughts), max_size=3).map(tuple)


@st.composite
def transcripts(draw, least=1):
    return [
        row(seq, content, draw(st.integers(0, 9)) > 0)
        for seq, content in enumerate(draw(st.lists(contents, min_size=least, max_size=6)), 1)
    ]


def row(seq, content, agent_visible=True):
    role = "user" if seq % 2 else "assistant"
    stop = None if seq % 2 else "end_turn"
    return StoredMessage(f"msg_{seq}", seq, "run_1", role, content, stop, None, True, agent_visible, AT)


def append(data, rows):
    """The file after an append that gets through, and the sections it made."""
    tail = read_tail(data)
    new = [row for row in rows if row.seq > tail.archived_to]
    added, sections = addition(tail, new, "ses_1") if new else (b"", ())
    return data + added, sections


def restored(text):
    """Content as it was stored: a mark in it has one backslash too many."""
    first, *rest = text.split("<!-- ")
    return first + "".join("<!-- " + (p[1:] if p.lstrip("\\").startswith("hango:") else p) for p in rest)


def read(text):
    """[(seq, [(title, content), ...]), ...] of one section, read as markdown: headings outside of fences count."""
    rows, lines = [], iter(text.split("\n"))
    for line in lines:
        if line.startswith("## "):
            rows.append((int(line.split()[1]), []))
        elif line.startswith("### "):
            rows[-1][1].append((line[4:], []))
        elif line.startswith("```"):
            fence = line[: len(line) - len(line.lstrip("`"))]
            body = []
            while (inner := next(lines)) != fence:
                body.append(inner)
            rows[-1][1][-1][1].append(restored("\n".join(body)))
    return rows


def expected(row):
    return (row.seq, list(map(shown, row.content)))


def shown(block):
    if block["type"] == "tool_use":
        long = [text for text in block["input"].values() if isinstance(text, str) and "\n" in text]
        short = {name: value for name, value in block["input"].items() if value not in long}
        return ("call", block["id"], [short, *long])
    if block["type"] == "tool_result":
        return ("result", block["tool_use_id"], [result_text(block["content"])])
    return (block["type"], None, [block_text(block)])


def found(title, bodies):
    kind, *words = title.split(" ", 2)
    if kind == "call":
        return ("call", words[0], [json.loads(bodies[0]), *bodies[1:]])
    return (kind, words[0] if words else None, bodies)


def sections_of(data):
    """(section, its lines) for each whole section of a file."""
    lines = data.decode(errors="replace").split("\n")  # a crash may cut a character
    return [(s, "\n".join(lines[s.first_line - 1 : s.last_line])) for s in read_tail(data).sections]


@given(transcripts(), st.integers(0, 6))
def test_a_file_reads_back_into_the_rows_it_was_made_of(rows, cut):
    data = b""
    for portion in (rows[:cut], rows[cut:]):
        data, _ = append(data, portion)
    back = [(seq, [found(*block) for block in blocks]) for _, text in sections_of(data) for seq, blocks in read(text)]
    assert back == [expected(row) for row in rows if row.agent_visible]


@given(transcripts(least=2), st.lists(st.tuples(st.integers(1, 6), st.floats(0, 1)), max_size=4))
def test_after_any_crashes_each_row_stands_in_exactly_one_whole_section(rows, crashes):
    data = b""
    for cut, share in crashes:
        whole, _ = append(data, rows[:cut])
        data += whole[len(data) : len(data) + int(share * (len(whole) - len(data)))]
    data, _ = append(data, rows)
    seqs = [seq for section, _ in sections_of(data) for seq in range(section.first_seq, section.last_seq + 1)]
    assert seqs == [row.seq for row in rows]
    for section, text in sections_of(data):
        assert text.startswith(f"<!-- hango:section seq={section.first_seq}-{section.last_seq} ")
        assert text.endswith(f"lines={section.first_line}-{section.last_line} -->")


@given(transcripts(), st.floats(0, 1))
def test_a_torn_section_of_the_same_rows_is_completed_byte_for_byte(rows, share):
    whole, sections = append(b"", rows)
    torn = whole[: int(share * len(whole))]
    assert append(torn, rows)[0] == whole
    longer = [*rows, row(len(rows) + 1, (text_block("more"),))]
    assert append(torn, longer)[0].startswith(whole) or read_tail(torn).rest.count(b"\n") == 0
    assert read_tail(whole).sections == sections


@given(transcripts(), st.integers(1, 9))
def test_lines_of_a_row_hold_it_and_nothing_else(rows, first_line):
    text = "\n" * (first_line - 1) + render_section(rows, "ses_1", first_line).removeprefix("\n")
    [section] = read_tail(text.encode()).sections
    lines = text.split("\n")
    ranges = line_ranges(rows, section)
    assert [*ranges] == [row.seq for row in rows if row.agent_visible]
    for seq, (first, last) in ranges.items():
        assert lines[first - 1].startswith(f"## {seq} ")
        assert [number for number, _ in read("\n".join(lines[first - 1 : last]))] == [seq]


@given(transcripts())
def test_ids_and_texts_are_in_the_file_and_media_are_not(rows):
    data, _ = append(b"", rows)
    text = data.decode()
    for block in (block for row in rows if row.agent_visible for block in row.content):
        assert str(block.get("id") or block.get("tool_use_id") or "") in text
    assert PIXELS not in text


def test_a_section_states_its_bytes():
    text = render_section([row(1, (text_block("é" * 10),))], "ses_1", 1)
    begin, body = text.split("\n", 1)
    body = body.rpartition("\n<!-- hango:end ")[0]
    assert begin == f"<!-- hango:section seq=1-1 lines=1-9 bytes={len(body.encode())} -->"


def test_what_was_written_by_something_else_is_marked_and_kept():
    data, [section] = append(b"somebody's notes\nwithout a mark", [row(1, (text_block("hi"),))])
    lines = data.decode().split("\n")
    assert lines[:3] == ["somebody's notes", "without a mark", TORN]
    assert lines[section.first_line - 1].startswith("<!-- hango:section seq=1-1 lines=4-")


@pytest.mark.parametrize("cut", [1, 30, 4000])
def test_the_front_of_a_tail_may_be_cut_anywhere(cut):
    data = b""
    for last in range(1, 30):
        data, _ = append(data, [row(seq, (text_block("x" * 90),)) for seq in range(1, last + 1)])
    assert read_tail(data[-cut:]).archived_to == (29 if cut > len(data.split(b"\n")[-1]) else 0)


def test_text_arguments_of_several_lines_stand_as_they_are_and_so_can_be_searched():
    call = {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {"path": "/w/a", "text": 'a "b"\nc\td'}}
    text = render_section([row(2, (call,))], "ses_1", 1)
    assert '```json\n{\n  "path": "/w/a"\n}\n```\n#### argument text\n```\na "b"\nc\td\n```' in text


def test_a_data_url_is_named_and_what_stands_around_it_is_kept():
    url = "data:image/png;base64," + PIXELS
    text = render_section([row(1, (result_block("toolu_1", f"before {url}) after", False),))], "ses_1", 1)
    assert "before [data URL: image/png, 308 bytes]) after" in text


def test_nul_and_lone_surrogates_do_not_reach_the_file():
    data, _ = append(b"", [row(1, (text_block("a\0b\ud800c"),))])
    assert "a\ufffdb\ufffdc" in data.decode()
