"""From a step and what its calls have answered so far to the calls to make now."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.providers.offline.results import Entry, entries_of, page_of, size_of
from app.providers.offline.standing import Outcome
from app.providers.offline.steps import Kind, Step

MAX_PAGES = 6
PAGE_LINES = 400
SHOWN_LINES = 200
MAX_FILES = 6
# A call's arguments stay well below the smallest usual max_tokens, so that they are never cut.
CHUNK_CHARS = 2500
_RE2_SIGNS = frozenset("\\.+*?()|[]{}^$")
APPEND_LOOKS = 2  # calls of an append before its first write


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    input: Mapping[str, Any]


def moves(step: Step, done: Sequence[Outcome], text: str | None) -> tuple[Call, ...]:
    """The next calls of the step, none when it is over. `text`: what to write, None when there is nothing to write."""
    if step.kind is Kind.APPEND:
        return _append(step, done, text)
    if any(outcome.is_error for outcome in done):
        return ()
    return _MOVES[step.kind](step, done, text)


def _once(call: Call, done: Sequence[Outcome]) -> tuple[Call, ...]:
    return () if done else (call,)


def _list(step: Step, done: Sequence[Outcome], _: str | None) -> tuple[Call, ...]:
    return _once(Call("list_files", {"path": step.path}), done)


def _search(step: Step, done: Sequence[Outcome], _: str | None) -> tuple[Call, ...]:
    pattern = ("(?i)" if step.any_case else "") + literal_pattern(step.text)
    return _once(Call("search_files", {"pattern": pattern, "path": step.path}), done)


def literal_pattern(text: str) -> str:
    return "".join(f"\\{char}" if char in _RE2_SIGNS else char for char in text)


def _replace(step: Step, done: Sequence[Outcome], _: str | None) -> tuple[Call, ...]:
    texts = {"old_string": step.text, "new_string": step.new, "replace_all": True}
    return _once(Call("edit_file", {"path": step.path, **texts}), done)


def _write(step: Step, done: Sequence[Outcome], text: str | None) -> tuple[Call, ...]:
    if text is None:
        return ()
    return _piece(step.path, chunks(text), len(done), appends=len(done) > 0)


def _append(step: Step, done: Sequence[Outcome], text: str | None) -> tuple[Call, ...]:
    """Looks first whether the file ends with a line feed, so that the new text begins on a line of its own."""
    if text is None or any(outcome.is_error for outcome in done[APPEND_LOOKS:]):
        return ()
    if not done:
        return Call("list_files", {"path": step.path}), _page(step.path, 1, PAGE_LINES)
    return _piece(step.path, chunks(appended(step.path, done, text)), len(done) - APPEND_LOOKS, appends=True)


def appended(path: str, done: Sequence[Outcome], text: str) -> str:
    """The text as it is added, on a line of its own."""
    return f"\n{text}" if _lacks_line_feed(path, done) else text


def _lacks_line_feed(path: str, done: Sequence[Outcome]) -> bool:
    """True when the whole text was read and its size leaves no room for a last line feed."""
    size, page = size_of(done[0].text, path), page_of(done[1].text if len(done) > 1 else None)
    if not size or page is None or page.following or page.cut:
        return False
    return len("\n".join(page.lines).encode()) == size


def _piece(path: str, texts: Sequence[str], number: int, appends: bool) -> tuple[Call, ...]:
    if number >= len(texts):
        return ()
    content = {"path": path, "content": texts[number]}
    return (Call("write_file", {**content, "append": True} if appends else content),)


def chunks(text: str) -> Sequence[str]:
    return [text[at : at + CHUNK_CHARS] for at in range(0, len(text), CHUNK_CHARS)] or [""]


def _page(path: str, offset: int, limit: int) -> Call:
    return Call("read_file", {"path": path, "offset": offset, "limit": limit})


def _read(step: Step, done: Sequence[Outcome], _: str | None) -> tuple[Call, ...]:
    if step.folder:
        return _in_folder(step, done, SHOWN_LINES)
    if step.tail and len(done) == 1:
        page = page_of(done[0].text)
        return (_page(step.path, max(1, page.total - step.tail + 1), min(step.tail, SHOWN_LINES)),) if page else ()
    limit = 1 if step.tail else min(step.limit or SHOWN_LINES, SHOWN_LINES)
    return _once(_page(step.path, step.offset, limit), done)


def _count(step: Step, done: Sequence[Outcome], _: str | None) -> tuple[Call, ...]:
    if step.units == ("files",):
        return _list(step, done, None)
    lines_only = step.units == ("lines",)
    if step.folder:
        return _in_folder(step, done, 1 if lines_only else PAGE_LINES)
    # The first page already says how many lines there are.
    return _once(_page(step.path, 1, 1), done) if lines_only else _next_page(step, done)


def _summarize(step: Step, done: Sequence[Outcome], _: str | None) -> tuple[Call, ...]:
    return _in_folder(step, done, SHOWN_LINES) if step.folder else _next_page(step, done)


def _next_page(step: Step, done: Sequence[Outcome]) -> tuple[Call, ...]:
    if not done:
        return (_page(step.path, 1, PAGE_LINES),)
    page = page_of(done[-1].text)
    if page is None or page.following is None or len(done) >= MAX_PAGES:
        return ()
    return (_page(step.path, page.following, PAGE_LINES),)


def _in_folder(step: Step, done: Sequence[Outcome], lines: int) -> tuple[Call, ...]:
    """Lists the folder, then reads its first files, all at once."""
    if not done:
        return (Call("list_files", {"path": step.path}),)
    return tuple(_page(entry.path, 1, lines) for entry in to_read(done[0].text)) if len(done) == 1 else ()


def to_read(listing: str | None) -> Sequence[Entry]:
    return [entry for entry in entries_of(listing) or () if not entry.path.endswith("/")][:MAX_FILES]


_MOVES: dict[Kind, Callable[[Step, Sequence[Outcome], str | None], tuple[Call, ...]]] = {
    Kind.LIST: _list,
    Kind.LOCATE: _list,
    Kind.READ: _read,
    Kind.SEARCH: _search,
    Kind.WRITE: _write,
    Kind.REPLACE: _replace,
    Kind.COUNT: _count,
    Kind.SUMMARIZE: _summarize,
}
