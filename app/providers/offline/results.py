"""What the file tools answer, read back into values. None stands for another form, such as a placeholder."""

from dataclasses import dataclass

EMPTY, NOT_TEXT = "[the file is empty]", "[not a text file"
_PART, _CUT, _STOPPED = "[lines ", " [cut, the line has ", "[stopped at "


@dataclass(frozen=True, slots=True)
class Page:
    """Lines `first`.. of a file of `total` lines; `following` is the next line to read, None at the end.

    `cut`: a line was too long and its end is missing.
    """

    lines: tuple[str, ...]
    first: int = 1
    total: int = 0
    following: int | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """`note` is the size, as the tool words it; `files` counts what the entry stands for."""

    path: str
    note: str
    files: int = 1


def page_of(text: str | None) -> Page | None:
    if text == EMPTY:
        return Page(())
    lines: list[str] = []
    footer, first, cut = "", 1, False
    for line in (text or "").split("\n"):
        number, tab, rest = line.partition("\t")
        if tab and number.strip().isdigit():
            first = first if lines else int(number)
            end = rest.rfind(_CUT) if rest.endswith("]") else -1
            cut = cut or end >= 0
            lines.append(rest if end < 0 else rest[:end])
        elif line.startswith(_PART):
            footer = line
    if not lines:
        return None
    total, following = _footer(footer) or (first + len(lines) - 1, None)
    return Page(tuple(lines), first, total, following, cut)


def _footer(line: str) -> tuple[int, int] | None:
    """(total, following) of `[lines 1 to 500 of 1234; read on with offset=501]`."""
    total = line.partition(" of ")[2].partition(";")[0]
    following = line.rpartition("=")[2].rstrip("]")
    return (int(total), int(following)) if total.isdigit() and following.isdigit() else None


def is_binary(text: str | None) -> bool:
    return bool(text) and str(text).startswith(NOT_TEXT)


def entries_of(text: str | None) -> list[Entry] | None:
    """Files of a listing; empty for a folder without files."""
    if text is None or text.startswith("There are no files"):
        return None if text is None else []
    found = [_entry(line) for line in text.split("\n") if line.startswith("/")]
    return found or None


def _entry(line: str) -> Entry:
    path, bracket, note = line.rpartition(" (")
    if not bracket or not note.endswith((" bytes)", " files)")):
        return Entry(line, "")
    count = note.split(" ")[0]
    return Entry(path, note[:-1], int(count) if path.endswith("/") and count.isdigit() else 1)


def left_out(text: str) -> str:
    """The listing's last line when it names entries that it leaves out, else nothing."""
    last = text.rpartition("\n")[2]
    return last if last.startswith("[") else ""


def size_of(text: str | None, path: str) -> int | None:
    """Bytes of one file in a listing."""
    for entry in entries_of(text) or ():
        count, _, unit = entry.note.partition(" ")
        if entry.path == path and unit == "bytes" and count.isdigit():
            return int(count)
    return None


def matches_of(text: str | None) -> tuple[list[str], str] | None:
    """(lines, the note when the search stopped early)."""
    if text is None:
        return None
    lines = text.split("\n")
    note = lines.pop() if lines[-1].startswith(_STOPPED) else ""
    found = [line for line in lines if line.startswith("/")]
    return (found, note) if found or "No line matches." in lines else None
