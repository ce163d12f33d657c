"""The offload file holds each row once, in whole sections, whatever failed or broke off before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.archive import TORN, read_tail
from app.errors import StoreUnavailable
from app.middleware.archive import FIRST_READ, TRIES, archive
from tests.rooms.middleware.summarization.evicted import PATH, SESSION, Disk, Transcript, steps

ROWS = steps(10)


@pytest.fixture
def transcript():
    return Transcript(list(ROWS))


@pytest.fixture
def disk():
    return Disk()


async def text_of(files):
    return (await files.read(SESSION, PATH)).decode()


async def seqs_of(files):
    sections = read_tail(await files.read(SESSION, PATH)).sections
    return [seq for section in sections for seq in range(section.first_seq, section.last_seq + 1)]


def assert_lines_are_right(text, archived, from_seq, to_seq):
    lines = text.split("\n")
    assert [*archived.lines_of_seq] == list(range(from_seq, to_seq + 1))
    for seq, (first, last) in archived.lines_of_seq.items():
        assert lines[first - 1].startswith(f"## {seq} ")
        assert archived.lines[0] < first <= last < archived.lines[1]


async def test_each_compaction_appends_its_rows_and_tells_their_lines(disk, transcript):
    for from_seq, to_seq in ((1, 7), (8, 13), (14, 19)):
        archived = await archive(disk, transcript, SESSION, from_seq, to_seq)
        assert archived.path == PATH
        assert_lines_are_right(await text_of(disk), archived, from_seq, to_seq)
    assert await seqs_of(disk) == list(range(1, 20))


async def test_the_append_reads_the_end_of_the_file_and_its_own_rows_alone(disk, transcript):
    transcript.rows = steps(200)
    await archive(disk, transcript, SESSION, 1, 381)
    disk.bytes_read, transcript.read = 0, []
    await archive(disk, transcript, SESSION, 382, 389)
    assert disk.bytes_read <= FIRST_READ < len(await text_of(disk)) // 10
    assert transcript.read == list(range(382, 390))


async def test_the_same_range_again_writes_nothing_and_tells_the_same_lines(disk, transcript):
    first = await archive(disk, transcript, SESSION, 1, 9)
    before = await text_of(disk)
    assert await archive(disk, transcript, SESSION, 1, 9) == first
    assert await text_of(disk) == before


@pytest.mark.parametrize(("from_seq", "to_seq"), [(1, 5), (4, 5), (1, 15), (6, 15), (9, 9)])
async def test_a_cut_that_moves_after_a_lost_record_finds_its_rows(disk, transcript, from_seq, to_seq):
    await archive(disk, transcript, SESSION, 1, 9)
    archived = await archive(disk, transcript, SESSION, from_seq, to_seq)
    assert_lines_are_right(await text_of(disk), archived, from_seq, to_seq)
    assert await seqs_of(disk) == list(range(1, max(to_seq, 9) + 1))


async def test_a_full_disk_changes_nothing_and_the_next_append_writes_the_missed_rows_too(disk, transcript):
    await archive(disk, transcript, SESSION, 1, 5)
    before = await text_of(disk)
    disk.full = True
    with pytest.raises(StoreUnavailable):
        await archive(disk, transcript, SESSION, 6, 11)
    assert await text_of(disk) == before
    assert transcript.rows == ROWS
    disk.full = False
    archived = await archive(disk, transcript, SESSION, 12, 15)
    assert await seqs_of(disk) == list(range(1, 16))
    assert_lines_are_right(await text_of(disk), archived, 12, 15)


@pytest.mark.parametrize("killed_after", [0, 1, 40, 600, 3000])
async def test_after_a_kill_within_the_append_the_section_is_completed(transcript, killed_after):
    whole, disk = Disk(), Disk(killed_after=killed_after)
    for files in (whole, disk):
        files.killed_after, kill = None, files.killed_after
        await archive(files, transcript, SESSION, 1, 5)
        files.killed_after = kill
    with pytest.raises(KeyboardInterrupt):
        await archive(disk, transcript, SESSION, 6, 15)
    disk.killed_after = None
    archived = await archive(disk, transcript, SESSION, 6, 15)
    assert archived == await archive(whole, transcript, SESSION, 6, 15)
    assert await text_of(disk) == await text_of(whole)


async def test_a_torn_section_that_reached_further_than_the_new_cut_is_marked(disk, transcript):
    disk.killed_after = 2000
    with pytest.raises(KeyboardInterrupt):
        await archive(disk, transcript, SESSION, 1, 15)
    disk.killed_after = None
    archived = await archive(disk, transcript, SESSION, 1, 5)
    assert f"\n{TORN}\n" in await text_of(disk)
    assert await seqs_of(disk) == [1, 2, 3, 4, 5]
    assert_lines_are_right(await text_of(disk), archived, 1, 5)


def between(disk, *others):
    """Lets one of `others` work between each read of the file's end and the append that follows it."""
    append, waiting = disk.append, list(others)

    async def late(*arguments):
        if waiting:
            await waiting.pop(0)()
        await append(*arguments)

    disk.append = late


@pytest.mark.parametrize(("stale_to", "new_to"), [(6, 8), (8, 6), (6, 6)])
@pytest.mark.parametrize("before", [0, 3])
async def test_a_former_owner_that_appends_late_writes_no_row_twice(disk, transcript, before, stale_to, new_to):
    if before:
        await archive(disk, transcript, SESSION, 1, before)
    told = []

    async def new_owner():
        told.append(await archive(disk, transcript, SESSION, before + 1, new_to))

    between(disk, new_owner)
    told.append(await archive(disk, transcript, SESSION, before + 1, stale_to))
    told.append(await archive(disk, transcript, SESSION, 9, 12))
    assert await seqs_of(disk) == list(range(1, 13))
    for archived, to_seq in zip(told[:2], (new_to, stale_to), strict=True):
        assert_lines_are_right(await text_of(disk), archived, before + 1, to_seq)
    assert_lines_are_right(await text_of(disk), told[2], 9, 12)


@pytest.mark.parametrize("stale_to", [5, 9, 15])
@pytest.mark.parametrize("killed_after", [1, 40, 600, 3000])
@pytest.mark.parametrize("before", [0, 3])
async def test_what_a_former_owner_has_torn_meanwhile_is_completed_or_marked(
    disk, transcript, before, killed_after, stale_to
):
    if before:
        await archive(disk, transcript, SESSION, 1, before)

    async def killed():
        disk.killed_after = killed_after
        with pytest.raises(KeyboardInterrupt):
            await archive(disk, transcript, SESSION, before + 1, stale_to)
        disk.killed_after = None

    between(disk, killed)
    archived = await archive(disk, transcript, SESSION, before + 1, 9)
    assert_lines_are_right(await text_of(disk), archived, before + 1, 9)
    archived = await archive(disk, transcript, SESSION, 10, 19)
    assert_lines_are_right(await text_of(disk), archived, 10, 19)
    assert await seqs_of(disk) == list(range(1, 20))


async def test_a_file_that_never_stays_as_it_was_read_is_given_up(disk, transcript):
    append = disk.append

    async def grow():
        await append(SESSION, PATH, b"x")

    between(disk, *[grow] * TRIES)
    with pytest.raises(StoreUnavailable):
        await archive(disk, transcript, SESSION, 1, 9)
    assert await text_of(disk) == "x" * TRIES


@given(st.lists(st.tuples(st.integers(0, 8), st.none() | st.integers(0, 6000)), max_size=6))
async def test_any_order_of_cuts_and_kills_ends_with_each_row_once(cuts):
    disk, transcript = Disk(), Transcript(list(ROWS))
    kept_from = 1
    for size, killed_after in cuts:
        disk.killed_after = killed_after
        to_seq = min(kept_from + size, 19)
        try:
            await archive(disk, transcript, SESSION, kept_from, to_seq)
        except KeyboardInterrupt:
            continue  # no record was stored, so the next cut begins at the same row
        kept_from = min(to_seq + 1, 19)
    disk.killed_after = None
    archived = await archive(disk, transcript, SESSION, kept_from, 21)
    assert await seqs_of(disk) == list(range(1, 22))
    assert_lines_are_right(await text_of(disk), archived, kept_from, 21)
