"""The files of a workspace have a limit, each and together; what only the server writes has none."""

import asyncio

import pytest

from app.errors import BodyTooLarge, PathRefused
from app.filesystem.limited import LimitedFiles

A, B = "/workspace/a", "/workspace/d/b"


async def size(files, path="/workspace"):
    return sum(info.size for info in await files.list("ses_1", path))


async def test_a_file_over_its_limit_is_refused_and_stays_as_it_was(files):
    limited = LimitedFiles(files, 10, None)
    await limited.write("ses_1", A, b"x" * 10)
    with pytest.raises(BodyTooLarge) as refused:
        await limited.write("ses_1", A, b"y" * 11)
    assert refused.value.extra == {"limit_bytes": 10}
    with pytest.raises(BodyTooLarge, match="at most 10 bytes; this one would have 11"):
        await limited.append("ses_1", "/workspace/./a", b"y")
    assert await limited.read("ses_1", A) == b"x" * 10


async def test_all_files_together_have_a_limit_and_may_always_shrink(files):
    limited = LimitedFiles(files, 100, 20)
    await limited.write("ses_1", A, b"x" * 12)
    await limited.append("ses_1", B, b"x" * 8)
    for change in (limited.write("ses_1", "/workspace/c", b"x"), limited.append("ses_1", B, b"x")):
        with pytest.raises(BodyTooLarge, match="at most 20 bytes together; they would have 21"):
            await change
    await limited.write("ses_2", A, b"x" * 20)
    await limited.write("ses_1", A, b"x" * 2)
    await limited.append("ses_1", B, b"x" * 10)
    assert await size(limited) == 20
    smaller = LimitedFiles(files, 100, 5)
    await smaller.write("ses_1", B, b"x" * 10)
    assert await size(smaller) == 12


async def test_writes_at_once_share_the_room(files):
    limited = LimitedFiles(files, 100, 30)
    writes = (limited.write("ses_1", f"/workspace/{n}", b"x" * 10) for n in range(8))
    done = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(answer, BodyTooLarge) for answer in done) == 5
    assert await size(limited) == 30


async def test_history_and_memory_have_no_limit(files):
    limited = LimitedFiles(files, 1, 1)
    await limited.append("ses_1", "/conversation_history/ses_1.md", b"x" * 50)
    await limited.write("ses_1", "/memory/m", b"x" * 50)
    assert await size(limited, "/") == 100


async def test_a_bad_path_is_told_before_a_size(files):
    with pytest.raises(PathRefused):
        await LimitedFiles(files, 1, 1).write("ses_1", "/workspace/../x", b"xx")
