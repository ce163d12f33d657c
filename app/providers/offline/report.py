"""The final answer: each step's outcome in order, errors as they are, then what was left undone."""

from collections.abc import Sequence

from app.providers.offline.digest import shortened
from app.providers.offline.findings import finding
from app.providers.offline.jobs import TOOLS, Job
from app.providers.offline.language import Language
from app.providers.offline.moves import APPEND_LOOKS, appended, to_read
from app.providers.offline.phrases import say
from app.providers.offline.results import Page, is_binary, page_of
from app.providers.offline.standing import Outcome
from app.providers.offline.steps import Kind, Remark, Step

_FIRST_WRITE = {Kind.WRITE: 0, Kind.APPEND: APPEND_LOOKS}


def lead(steps: Sequence[Step], language: Language) -> str:
    *most, last = [doing(step, language) for step in steps]
    return say(language, "lead", steps=", ".join(most) + say(language, "and") + last if most else last)


def doing(step: Step, language: Language) -> str:
    return say(language, f"do.{step.kind}", path=step.path)


def report(job: Job, remarks: Sequence[Remark], room: int) -> str:
    """`room`: bytes for quoted text, shared evenly by the steps."""
    parts = [_step_report(job, number, room // len(job.steps)) for number in range(len(job.steps))]
    return "\n\n".join([*parts, *remarked(remarks, job.language)])


def remarked(remarks: Sequence[Remark], language: Language) -> list[str]:
    return [say(language, each.reason, part=f'"{each.part}"') for each in remarks]


def _step_report(job: Job, number: int, room: int) -> str:
    step, done, language = job.steps[number], job.done(number), job.language
    what = doing(step, language)
    if not job.is_offered(number):
        return say(language, "not_offered", what=what, tool=TOOLS[step.kind])
    if not done:
        return say(language, _undone(job, number), what=what)
    if step.kind in _FIRST_WRITE:
        return _written(job, number)
    failed = next((outcome for outcome in done if outcome.is_error), None)
    if failed is not None and not step.folder:
        return say(language, "failed", what=what, error=shortened(failed.text or "", 1000))
    return _looked(step, done, language, room) or say(language, "gone", what=what)


def _undone(job: Job, number: int) -> str:
    source = job.steps[number].source
    if source is not None and not job.is_forgotten(source) and job.text(number) is None:
        return "no_outcome"
    return "gone" if job.is_forgotten(number) else "unfinished"


def _written(job: Job, number: int) -> str:
    step, done, language = job.steps[number], job.done(number)[_FIRST_WRITE[job.steps[number].kind] :], job.language
    failed = next((outcome for outcome in done if outcome.is_error), None)
    if failed is not None or not done:
        error = shortened(failed.text or "", 1000) if failed else ""
        partly = [say(language, "partly", count=len(done) - 1)] if len(done) > 1 else []
        return " ".join([say(language, "failed", what=doing(step, language), error=error), *partly])
    text = job.text(number)
    if text is None:
        return say(language, "gone", what=doing(step, language))
    if step.kind is Kind.APPEND:
        text = appended(step.path, job.done(number), text)
    name = "wrote" if step.kind is Kind.WRITE else "appended"
    made_up = [say(language, "invented", count=step.invented)] if step.invented else []
    return " ".join([say(language, name, path=step.path, size=len(text.encode())), *made_up])


def _looked(step: Step, done: Sequence[Outcome], language: Language, room: int) -> str | None:
    if step.kind is Kind.REPLACE:
        old, new = (f'"{shortened(text)}"' for text in (step.text, step.new))
        return say(language, "replaced", old=old, new=new, result=done[0].text)
    if step.kind is not Kind.READ:
        found = finding(step, done, language)
        return _within(found, room, language) if found else None
    if not step.folder:
        return _shown(step.path, done[-1], language, room)
    read = to_read(done[0].text)
    each = room // max(1, len(read))
    parts = [_shown(entry.path, one, language, each) for entry, one in zip(read, done[1:], strict=False)]
    return "\n\n".join(part for part in parts if part) or say(language, "no_files", path=step.path)


def _shown(path: str, outcome: Outcome, language: Language, room: int) -> str | None:
    """The file's text, quoted; errors as they are."""
    if outcome.is_error:
        return f"{path}: {outcome.text}"
    page = page_of(outcome.text)
    if page is None:
        return say(language, "binary", path=path) if is_binary(outcome.text) else None
    if not page.lines:
        return say(language, "empty", path=path)
    text = _within("\n".join(page.lines), room, language)
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{_head(path, page, language)}\n{fence}\n{text}\n{fence}"


def _head(path: str, page: Page, language: Language) -> str:
    if len(page.lines) == page.total:
        return say(language, "whole", path=path, total=page.total)
    last = page.first + len(page.lines) - 1
    return say(language, "part", path=path, first=page.first, last=last, total=page.total)


def _within(text: str, room: int, language: Language) -> str:
    data = text.encode()
    return text if len(data) <= room else f"{data[:room].decode(errors='ignore')}\n{say(language, 'cut')}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest
