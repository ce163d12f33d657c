"""What a step found, as text: for the answer, and for a file when the request wants it written."""

from collections.abc import Sequence

from app.providers.offline.digest import Digest, digest, shortened
from app.providers.offline.language import Language
from app.providers.offline.moves import to_read
from app.providers.offline.phrases import say
from app.providers.offline.results import Entry, Page, entries_of, is_binary, left_out, matches_of, page_of
from app.providers.offline.standing import Outcome
from app.providers.offline.steps import Kind, Step

MAX_ENTRIES = 100
MAX_MATCHES = 50


def outcome_text(step: Step, done: Sequence[Outcome], language: Language) -> str | None:
    """The step's outcome as the content of a file; None when it failed, is not in view, or is not whole."""
    if not done or any(outcome.is_error or outcome.text is None for outcome in done):
        return None
    if step.kind is Kind.READ:
        return _whole_text(done) if not step.folder else None
    found = finding(step, done, language)
    return f"{found}\n" if found is not None else None


def _whole_text(done: Sequence[Outcome]) -> str | None:
    page = page_of(done[-1].text)
    if page is None or page.cut or (page.following and len(page.lines) < page.total):
        return None
    return "".join(f"{line}\n" for line in page.lines)


def finding(step: Step, done: Sequence[Outcome], language: Language) -> str | None:
    """The outcome of a looking step other than reading a file; None when its form is not known."""
    match step.kind:
        case Kind.LIST:
            return _listing(step, done[0].text, language)
        case Kind.LOCATE:
            return _located(step, done[0].text, language)
        case Kind.SEARCH:
            return _matches(step, done[0].text, language)
        case Kind.COUNT:
            return _counted(step, done, language)
        case _:
            return _summary(step, done, language)


def _listing(step: Step, text: str | None, language: Language) -> str | None:
    entries = entries_of(text)
    if entries is None:
        return None
    if not entries:
        return say(language, "no_files", path=step.path)
    head = say(language, "listed", path=step.path, count=sum(entry.files for entry in entries))
    rest = left_out(text or "")
    return "\n".join([head, *_bullets(entries, language), *([rest] if rest else [])])


def _bullets(entries: Sequence[Entry], language: Language) -> list[str]:
    lines = [f"- {entry.path} ({entry.note})" if entry.note else f"- {entry.path}" for entry in entries[:MAX_ENTRIES]]
    more = len(entries) - MAX_ENTRIES
    return [*lines, say(language, "more", count=more)] if more > 0 else lines


def _located(step: Step, text: str | None, language: Language) -> str | None:
    entries = entries_of(text)
    if entries is None:
        return None
    sought = step.text.lower().strip("/")
    found = [entry for entry in entries if sought in entry.path.lower()]
    head = say(language, "located" if found else "not_located", text=step.text, path=step.path)
    return "\n".join([head, *_bullets(found, language)])


def _matches(step: Step, text: str | None, language: Language) -> str | None:
    found = matches_of(text)
    if found is None:
        return None
    lines, note = found
    sought = f'"{shortened(step.text)}"'
    head = say(language, "matches" if lines else "no_match", count=len(lines), path=step.path, text=sought)
    shown = [f"- {shortened(line, 300)}" for line in lines[:MAX_MATCHES]]
    more = [say(language, "more", count=len(lines) - MAX_MATCHES)] if len(lines) > MAX_MATCHES else []
    return "\n".join([head, *shown, *more, *([note] if note else [])])


def _joined(done: Sequence[Outcome]) -> Page | None:
    """The pages of one file as one; `following` says that the end was not read."""
    pages = [page for outcome in done if (page := page_of(outcome.text)) is not None]
    if len(pages) < len(done) or not pages:
        return None
    lines = tuple(line for page in pages for line in page.lines)
    return Page(lines, 1, pages[-1].total, pages[-1].following, any(page.cut for page in pages))


def _counted(step: Step, done: Sequence[Outcome], language: Language) -> str | None:
    if step.units == ("files",):
        entries = entries_of(done[0].text)
        return (
            None if entries is None else _sentence(step, step.path, {"files": sum(e.files for e in entries)}, language)
        )
    if not step.folder:
        return _count_in(step, step.path, done, language)
    read = to_read(done[0].text)
    parts = [_count_in(step, e.path, (one,), language) for e, one in zip(read, done[1:], strict=False)]
    lines = [part for part in parts if part is not None]
    return "\n".join([*lines, *_unread(done, language)]) if lines else say(language, "no_files", path=step.path)


def _count_in(step: Step, path: str, done: Sequence[Outcome], language: Language) -> str | None:
    page = _joined(done)
    if page is None:
        return say(language, "binary", path=path) if is_binary(done[0].text) else None
    text = "\n".join(page.lines)
    found = {"lines": page.total, "words": len(text.split()), "characters": len(text)}
    if step.text:
        found["occurrences"] = text.count(step.text)
    counts = {unit: found[unit] for unit in step.units if unit in found}
    partial = (page.following or page.cut) and set(counts) != {"lines"}
    return _sentence(step, path, counts, language, page if partial else None)


def _sentence(step: Step, path: str, counts: dict[str, int], language: Language, part: Page | None = None) -> str:
    words = ", ".join(say(language, unit, count=count, text=f'"{step.text}"') for unit, count in counts.items())
    if part is None:
        return say(language, "counted", path=path, counts=words)
    return say(language, "counted_part", path=path, counts=words, lines=len(part.lines), total=part.total)


def _unread(done: Sequence[Outcome], language: Language) -> list[str]:
    left = sum(entry.files for entry in entries_of(done[0].text) or ()) - (len(done) - 1)
    return [say(language, "not_read", count=left)] if left > 0 else []


def _summary(step: Step, done: Sequence[Outcome], language: Language) -> str | None:
    if not step.folder:
        return _digested(step.path, done, language)
    listing = _listing(step, done[0].text, language)
    if listing is None:
        return None
    read = to_read(done[0].text)
    parts = [_digested(e.path, (one,), language) for e, one in zip(read, done[1:], strict=False)]
    return "\n\n".join([listing, *(part for part in parts if part), *_unread(done, language)])


def _digested(path: str, done: Sequence[Outcome], language: Language) -> str | None:
    page = _joined(done)
    if page is None:
        return say(language, "binary", path=path) if is_binary(done[0].text) else None
    if not page.lines:
        return say(language, "empty", path=path)
    found = digest(page.lines)
    name = "digest_part" if page.following else "digest"
    head = say(language, name, path=path, lines=found.lines, words=found.words, total=page.total)
    return "\n".join([head, *_details(found, language)])


def _details(found: Digest, language: Language) -> list[str]:
    details = []
    if found.headings:
        details.append(say(language, "headings", items="; ".join(found.headings)))
    if found.opening:
        details.append(say(language, "opens", text=found.opening))
    if found.key_lines:
        details.append(say(language, "key_lines", items="; ".join(found.key_lines)))
    return details
