"""Plain requests in English and Vietnamese, with and without diacritics, and the calls they become."""

import pytest

from app.providers.offline.invention import MAX_LINES
from app.providers.offline.language import Language, language_of
from app.providers.offline.lexer import lex
from app.providers.offline.moves import moves
from app.providers.offline.planner import MAX_STEPS, plan
from app.providers.offline.steps import Kind, Reason


def planned(text, last=None):
    tokens = lex(text)
    return plan(text, tokens, language_of(tokens), last)


def shown(step):
    """The step's first call; an append shows what it adds, since it looks at the file first."""
    if step.kind is Kind.APPEND:
        return f"append {step.path} {step.text!r}"
    if step.source is not None:
        return f"write {step.path} from {step.source}"
    call = moves(step, (), step.text)[0]
    rest = [value for name, value in call.input.items() if name not in ("path", "replace_all", "offset", "limit")]
    texts = [] if call.name == "read_file" else [repr(value) for value in rest]
    return " ".join([call.name.removesuffix("_file").removesuffix("_files"), call.input["path"], *texts])


def calls(text, last=None):
    return [shown(step) for step in planned(text, last).steps]


ONE = [
    ("List files", "list /workspace"),
    ("ls", "list /workspace"),
    ("  LIST   the FILES,  please ", "list /workspace"),
    ("what files are there?", "list /workspace"),
    ("what is in /workspace?", "list /workspace"),
    ("show me all files", "list /workspace"),
    ("please list the files in the docs folder", "list /workspace/docs"),
    ("liệt kê các tệp", "list /workspace"),
    ("liet ke cac tep trong thu muc docs", "list /workspace/docs"),
    ("list /workspace/docs", "list /workspace/docs"),
    ("trong thư mục có gì?", "list /workspace"),
    ("Read notes.md.", "read /workspace/notes.md"),
    ("READ   Notes.MD", "read /workspace/Notes.MD"),
    ("Can you show me `notes.md`?", "read /workspace/notes.md"),
    ("what's in notes.md?", "read /workspace/notes.md"),
    ("what does src/app.py say", "read /workspace/src/app.py"),
    ("đọc notes.md giúp tôi", "read /workspace/notes.md"),
    ("doc file notes.md", "read /workspace/notes.md"),
    ("notes.md có gì?", "read /workspace/notes.md"),
    ("read /tool_results/000002-00.txt", "read /tool_results/000002-00.txt"),
    ("search for TODO in /workspace", r"search /workspace '(?i)TODO'"),
    ("find 'foo bar' in src/app.py", r"search /workspace/src/app.py 'foo bar'"),
    ('which files contain "x(y)"?', r"search /workspace 'x\\(y\\)'"),
    ("Does notes.md mention cats?", "search /workspace/notes.md '(?i)cats'"),
    ('tìm chữ "TODO" trong thư mục src', "search /workspace/src 'TODO'"),
    ("tim TODO trong /workspace", "search /workspace '(?i)TODO'"),
    ("search notes.md for milk", "search /workspace/notes.md '(?i)milk'"),
    ("find all files containing hello", "search /workspace '(?i)hello'"),
    ("tìm từ milk trong notes.md", "search /workspace/notes.md '(?i)milk'"),
    ("find the file notes.md", "list /workspace"),
    ("write hello world to a.txt", "write /workspace/a.txt 'hello world'"),
    ("create a.txt containing hello and bye", "write /workspace/a.txt 'hello and bye'"),
    ('write "it is: done, ok" to a.txt', "write /workspace/a.txt 'it is: done, ok'"),
    ("write a.txt: buy milk, then read a book", "write /workspace/a.txt 'buy milk, then read a book'"),
    ("Write todo.md with three lines: alpha, beta, gamma", r"write /workspace/todo.md 'alpha\nbeta\ngamma'"),
    ("Write a.txt with\n```text\nline 1\n  line 2\n```", r"write /workspace/a.txt 'line 1\n  line 2\n'"),
    ("create an empty file x.txt", "write /workspace/x.txt ''"),
    ('create a.txt in the docs folder with "hi"', "write /workspace/docs/a.txt 'hi'"),
    ("ghi hello world vào a.txt", "write /workspace/a.txt 'hello world'"),
    ("tạo tệp a.txt với nội dung xin chào", "write /workspace/a.txt 'xin chào'"),
    ("append 'x' to log.txt", "append /workspace/log.txt 'x'"),
    ("add a line saying hello to a.txt", "append /workspace/a.txt 'hello'"),
    ('thêm "dòng mới" vào cuối tệp a.txt', "append /workspace/a.txt 'dòng mới'"),
    ("them dong tam biet vao a.txt", "append /workspace/a.txt 'tam biet'"),
    ("replace foo with bar in a.txt", "edit /workspace/a.txt 'foo' 'bar'"),
    ("in notes.md, change “one” to “two”", "edit /workspace/notes.md 'one' 'two'"),
    ("Change the word one to two in notes.md", "edit /workspace/notes.md 'one' 'two'"),
    ("remove 'x' from a.txt", "edit /workspace/a.txt 'x' ''"),
    ('thay "a" bằng "b" trong a.txt', "edit /workspace/a.txt 'a' 'b'"),
    ("doi foo thanh bar trong notes.md", "edit /workspace/notes.md 'foo' 'bar'"),
    ("how many lines are in a.txt?", "read /workspace/a.txt"),
    ("how many files are in docs/?", "list /workspace/docs"),
    ("có bao nhiêu tệp trong /workspace?", "list /workspace"),
    ("dem so tu trong a.txt", "read /workspace/a.txt"),
    ("summarize notes.md", "read /workspace/notes.md"),
    ("Summarise the docs folder", "list /workspace/docs"),
    ("tóm tắt notes.md", "read /workspace/notes.md"),
]


@pytest.mark.parametrize(("text", "call"), ONE)
def test_a_plain_request_becomes_its_call(text, call):
    assert calls(text) == [call]
    assert planned(text).remarks == ()


SEVERAL = [
    ("read a.txt, b.txt and c.txt", ["read /workspace/a.txt", "read /workspace/b.txt", "read /workspace/c.txt"]),
    ("list the files,read notes.md;count its words", ["list /workspace", *["read /workspace/notes.md"] * 2]),
    ("write a.txt: hello, then read it back", ["write /workspace/a.txt 'hello'", "read /workspace/a.txt"]),
    ("Write a.txt:\n- read x\n\nThen read it.", ["write /workspace/a.txt '- read x'", "read /workspace/a.txt"]),
    ('Write "a" to x.txt and "b" to y.txt', ["write /workspace/x.txt 'a'", "write /workspace/y.txt 'b'"]),
    ("1. list files\n2. read a.md\n", ["list /workspace", "read /workspace/a.md"]),
    ("read a.txt and b.txt, summarize them", ["read /workspace/a.txt", "read /workspace/b.txt"] * 2),
    ("summarize a.txt and write it to b.txt", ["read /workspace/a.txt", "write /workspace/b.txt from 0"]),
    ("write a summary of a.txt to b.txt", ["read /workspace/a.txt", "write /workspace/b.txt from 0"]),
    ("find 'x' and replace it with 'y' in a.txt", ["search /workspace 'x'", "edit /workspace/a.txt 'x' 'y'"]),
    ("đổi foo thành bar trong a.md rồi đọc lại", ["edit /workspace/a.md 'foo' 'bar'", "read /workspace/a.md"]),
    (
        "tạo a.txt với nội dung xin chào, sau đó thêm dòng tạm biệt, rồi đọc lại nó",
        ["write /workspace/a.txt 'xin chào'", "append /workspace/a.txt 'tạm biệt'", "read /workspace/a.txt"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SEVERAL)
def test_a_request_in_parts_becomes_steps_in_order(text, expected):
    assert calls(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "list the files in /workspace, write notes.md with three lines, read it back",
        "List files. Then write notes.md with 3 lines and read it back!",
        "liệt kê các tệp trong /workspace, viết notes.md gồm ba dòng, rồi đọc lại",
        "liet ke cac tep, viet notes.md gom ba dong, sau do doc lai no",
    ],
)
def test_lines_that_nobody_gave_are_made_up_and_counted(text):
    listing, writing, reading = planned(text).steps
    assert (listing.kind, writing.kind, reading.kind) == (Kind.LIST, Kind.WRITE, Kind.READ)
    assert writing.text.count("\n") == writing.invented == 3
    assert reading.path == writing.path == "/workspace/notes.md"


def test_made_up_lines_are_bounded():
    (step,) = planned("write a.txt with 999999 lines").steps
    assert step.invented == step.text.count("\n") == MAX_LINES


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("delete notes.md", Reason.CANNOT),
        ("xóa notes.md", Reason.CANNOT),
        ("make sure notes.md exists", Reason.CANNOT),
        ("write a poem about cats", Reason.CANNOT),
        ("run the tests in src/", Reason.CANNOT),
        ("My boss said we write notes.md daily", Reason.UNKNOWN),
        ("What is the capital of France?", Reason.UNKNOWN),
        ("thời tiết hôm nay thế nào", Reason.UNKNOWN),
        ("don't write notes.md", Reason.FORBIDDEN),
        ("đừng ghi gì vào notes.md", Reason.FORBIDDEN),
        ("never list the files", Reason.FORBIDDEN),
        ("read it back", Reason.WHICH_FILE),
        ("write 'hello'", Reason.WHICH_FILE),
        ("replace foo in a.txt", Reason.WHICH_TEXT),
        ("search", Reason.WHICH_TEXT),
    ],
)
def test_what_cannot_be_done_becomes_a_remark_and_no_step(text, reason):
    found = planned(text)
    assert found.steps == ()
    assert [remark.reason for remark in found.remarks] == [reason]


def test_a_refused_part_leaves_the_others():
    found = planned("don't write anything, just list the files")
    assert [step.kind for step in found.steps] == [Kind.LIST]
    assert [remark.reason for remark in found.remarks] == [Reason.FORBIDDEN]


def test_it_means_the_file_of_an_earlier_turn():
    assert calls("read it again", last="/workspace/old.md") == ["read /workspace/old.md"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("read the first 5 lines of a.txt", (1, 5, 0)),
        ("show lines 3-7 of a.txt", (3, 5, 0)),
        ("show line 4 of a.txt", (4, 1, 0)),
        ("show the last two lines of a.txt", (1, 0, 2)),
        ("đọc 5 dòng đầu của a.txt", (1, 5, 0)),
        ("đọc dòng 2 đến 4 của a.txt", (2, 3, 0)),
        ("xem 3 dòng cuối của a.txt", (1, 0, 3)),
    ],
)
def test_a_range_of_lines_is_understood(text, lines):
    (step,) = planned(text).steps
    assert (step.offset, step.limit, step.tail) == lines


def test_too_many_steps_are_cut_and_said():
    found = planned("read " + ", ".join(f"f{n}.txt" for n in range(MAX_STEPS + 5)))
    assert len(found.steps) == MAX_STEPS
    assert found.remarks[-1].reason is Reason.TOO_MANY


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("write notes.md: xin chào thế giới", Language.ENGLISH),
        ('search for "tạm biệt" in notes.md', Language.ENGLISH),
        ("đọc ghi-chú.md", Language.VIETNAMESE),
        ("dem so dong trong a.txt", Language.VIETNAMESE),
        ("", Language.ENGLISH),
    ],
)
def test_content_does_not_decide_the_language(text, language):
    assert language_of(lex(text)) is language


HOSTILE = [each * 9000 for each in ("and ", '"', "'a", "read\n", "read, ", "`", "a: ", "write: ", "```x")]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_repetition_costs_time_in_proportion(text):
    # A quadratic reading of these takes minutes, far beyond the limit of a hanging test.
    assert len(planned(text).steps) <= MAX_STEPS
