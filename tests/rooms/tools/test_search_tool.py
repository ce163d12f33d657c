import asyncio
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from app.conversation.tools import ToolRequest
from app.tools.search_files import MAX_BYTES, MAX_FILES, MAX_MATCHES, MAX_SECONDS, SearchFiles


@dataclass
class SteppingClock:
    """Every look at it takes `step` seconds; knows the threads that looked."""

    step: float
    time: float = 0.0
    readers: set[int] = field(default_factory=set)

    def now(self):
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self):
        self.readers.add(threading.get_ident())
        self.time += self.step
        return self.time

    async def sleep(self, seconds):
        self.time += seconds


async def fill(files, **contents):
    for name, data in contents.items():
        await files.write("ses_1", f"/workspace/{name.replace('__', '/').replace('_', '.')}", data)


async def test_matches_come_with_path_line_and_text(run, files):
    await fill(files, a_txt=b"one\ntwo\n", d__b_py=b"x\r\nTwo times two\r\n", c_bin=b"two\0")
    assert (await run("search_files", pattern="(?i)two")).content == (
        "/workspace/a.txt:2: two\n/workspace/d/b.py:2: Two times two"
    )
    assert (
        await run("search_files", pattern="two", path="/workspace/d")
    ).content == "/workspace/d/b.py:2: Two times two"
    assert (await run("search_files", pattern="two", path="/workspace/a.txt")).content == "/workspace/a.txt:2: two"
    assert (await run("search_files", pattern="seven")).content == "No line matches."


@pytest.mark.parametrize(
    ("glob", "path", "found"),
    [
        ("*.py", "/workspace", ["a.py", "d/b.py", "d/e/c.py"]),
        ("d/*.py", "/workspace", ["d/b.py"]),
        ("d/**", "/workspace/", ["d/b.py", "d/e/c.py"]),
        ("e/*.py", "/workspace/d", ["d/e/c.py"]),
        ("*.md", "/", []),
        ("workspace/**/b.*", "/", ["d/b.py"]),
    ],
)
async def test_a_glob_chooses_by_name_or_by_path_below_the_folder(run, files, glob, path, found):
    await fill(files, a_py=b"x", d__b_py=b"x", d__e__c_py=b"x", a_txt=b"x")
    result = await run("search_files", pattern="x", path=path, glob=glob)
    assert [line for line in result.content.split("\n") if ":" in line] == [f"/workspace/{name}:1: x" for name in found]


async def test_every_area_can_be_searched(run, files):
    await files.append("ses_1", "/conversation_history/ses_1.md", b"the needle\n")
    assert (
        await run("search_files", pattern="needle", path="/")
    ).content == "/conversation_history/ses_1.md:1: the needle"


async def test_the_number_of_matches_is_bounded_and_said(run, files):
    await fill(files, a=b"x\n" * MAX_MATCHES)
    assert "stopped" not in (await run("search_files", pattern="x")).content
    await fill(files, b=b"x\n", c=b"x\n")
    lines = (await run("search_files", pattern="x")).content.split("\n")
    assert len(lines) == MAX_MATCHES + 1
    assert lines[-1] == f"[stopped at {MAX_MATCHES} matches, in file 2 of 3; narrow the pattern, path or glob]"


async def test_the_number_of_files_and_bytes_is_bounded(run, files):
    for number in range(3):
        await files.write("ses_1", f"/memory/{number}", bytes(MAX_BYTES // 2 + 1))
    assert (
        f"stopped at {MAX_BYTES} bytes, in file 2 of 3;"
        in (await run("search_files", pattern="x", path="/memory")).content
    )
    for number in range(MAX_FILES + 1):
        await files.write("ses_1", f"/workspace/{number}", b"")
    assert f"stopped at {MAX_FILES} files, " in (await run("search_files", pattern="x")).content


async def test_the_time_is_bounded_inside_a_file_too(files):
    await fill(files, a=b"needle\n" + b"x" * 1_000_000 + b"\nneedle\n" * 100_000, b=b"needle")
    search = SearchFiles(files, SteppingClock(step=MAX_SECONDS / 4))
    result = await search.run(ToolRequest("ses_1", "run_1", "toolu_1", "search_files", {"pattern": "^needle$"}))
    lines = result.content.split("\n")
    assert lines[0] == "/workspace/a:1: needle"
    assert lines[-1] == "[stopped at 10 seconds, in file 1 of 2; narrow the pattern, path or glob]"
    assert not any(line.startswith("/workspace/b") for line in lines)


async def test_matching_happens_outside_the_event_loops_thread(files):
    await fill(files, a=b"a\n" * 100_000)
    clock = SteppingClock(step=0)
    search = SearchFiles(files, clock)
    await search.run(ToolRequest("ses_1", "run_1", "toolu_1", "search_files", {"pattern": "b"}))
    assert len(clock.readers) == 2
    assert threading.get_ident() in clock.readers


async def test_the_pattern_that_once_blocked_the_loop_answers_at_once(run, files):
    await fill(files, a=b"a" * 28 + b"!")
    async with asyncio.timeout(1):
        assert (await run("search_files", pattern="(a+)+$")).content == "No line matches."
