"""The view head: one user message in the place of what a summary or a truncation took out of the view.

Our tags stand for themselves only: in content every `<` before one of their names is escaped and the sentinel is taken
out, so that no text can end its part early or look like the code's own line about the file.
"""

from app.context.markers import sentinel
from app.context.tags import escaped
from app.context.wording import WORDINGS, Wording
from app.conversation.messages import Message, text_block
from app.conversation.records import Cut, Ledger

_TAGS = ("conversation_record", "summary", "index", "full_text")


def render_head(ledger: Ledger, session_id: str) -> Message | None:
    """None when nothing was evicted. Without a summary: a frame that says what is missing and where it is."""
    cut, summary = ledger.cut, ledger.summary
    if cut is None:
        return None
    wording, mark = WORDINGS[cut.shape], sentinel(session_id)
    parts = [
        wording.summary.format(text=_safe(summary.summary, mark)) if summary else "",
        wording.index.format(text=_safe(summary.index, mark)) if summary and summary.index else "",
        _gap(wording, cut, ledger.unsummarized_from),
        wording.pinned if cut.pinned_seqs else "",
        _archive(wording, cut, summary),
    ]
    return Message("user", (text_block(wording.head.format(mark=mark, parts="".join(parts))),))


def _gap(wording: Wording, cut: Cut, first: int) -> str:
    return wording.gap.format(first=first, last=cut.kept_from_seq - 1) if first < cut.kept_from_seq else ""


def _archive(wording: Wording, cut: Cut, summary: Cut | None) -> str:
    """The newest record that could be written to the file tells how much is in it."""
    written = next((record for record in (cut, summary) if record and record.path), None)
    if written is None:
        return wording.no_archive
    lines = wording.lines.format(first=written.lines[0], last=written.lines[1]) if written.lines else ""
    return wording.archive.format(path=written.path, last=written.kept_from_seq - 1, lines=lines)


def _safe(text: str, mark: str) -> str:
    return escaped(text.replace(mark, "(marker)"), _TAGS)
