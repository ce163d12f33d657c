"""view = apply(ledger, rows): the messages of a request, with what the ledger's records took out or shortened.

The passes of view.py run on what is left: rows of the kept part and pinned ones, shaped, without the thinking that an
epoch left out. The head stands before all of it, alone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from app.context.blocks import THINKING
from app.context.fold import folded
from app.context.head import render_head
from app.context.shape import Shaped, shape_contents
from app.context.view import merged, numbered, opened
from app.context.wording import WORDINGS
from app.conversation.messages import Content, Message, StoredMessage, text_block, tool_results, tool_uses
from app.conversation.records import Cut, Fold, Ledger, Record

_TAG = "hango_source"

Contents = Callable[[StoredMessage, Shaped | None], Content]
Note = Callable[[str, str], Content]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a message of a view comes from.

    `seqs`: the rows it shows blocks of; the head and what stands for folded rows show none. `shaped`: (block index in
    the message, ids of the records that shaped it); for the head and such a text the records they render.
    """

    seqs: tuple[int, ...]
    shaped: tuple[tuple[int, tuple[str, ...]], ...]


def apply(
    ledger: Ledger, rows: Sequence[StoredMessage], session_id: str, continues: bool = False
) -> tuple[Message, ...]:
    """The messages of the next request: the same bytes for the same ledger and rows.

    `rows` ascend by seq and hold all from the ledger's kept_from_seq on and its pinned ones; others below are ignored.
    The ledger is a usable one. Unchanged blocks are the stored objects. `continues`: as in `render_view`.
    """
    return _with_head(render_head(ledger, session_id), body(ledger, rows, session_id, continues))


def body(ledger: Ledger, rows: Sequence[StoredMessage], session_id: str, continues: bool) -> list[Message]:
    """The view without its head, before calls and results are paired."""
    return merged(_messages(ledger, rows, session_id), continues)


def _with_head(head: Message | None, messages: list[Message]) -> tuple[Message, ...]:
    return (head, *numbered(messages)) if head else tuple(numbered(opened(messages)))


def provenance(ledger: Ledger, rows: Sequence[StoredMessage], session_id: str) -> list[Source]:
    """One source for each message of the view."""
    messages = merged(_messages(ledger, rows, session_id, _tagged, _tagged_note), False)
    return [_source(message) for message in _with_head(_head(ledger, session_id), messages)]


def _head(ledger: Ledger, session_id: str) -> Message | None:
    records = dict.fromkeys(record.id for record in (ledger.summary, ledger.cut) if record)
    head = render_head(ledger, session_id)
    return head and Message("user", ({**head.content[0], _TAG: (None, tuple(records))},))


def _source(message: Message) -> Source:
    tags = [(index, *block[_TAG]) for index, block in enumerate(message.content) if _TAG in block]
    seqs = dict.fromkeys(seq for _, seq, _ in tags if seq is not None)
    return Source(tuple(seqs), tuple((index, records) for index, _, records in tags if records))


def _messages(
    ledger: Ledger,
    rows: Sequence[StoredMessage],
    session_id: str,
    contents: Contents = lambda row, shaped: shaped.content if shaped else row.content,
    note: Note = lambda text, record: (text_block(text),),
) -> list[Message]:
    """The results of a pinned row answer no call that is shown, so the passes leave them out as strays."""
    kept_from, pinned, strip_to = ledger.kept_from_seq, frozenset(ledger.pinned_seqs), ledger.strip_thinking_to_seq
    chosen = [row for row in rows if row.agent_visible and (row.seq >= kept_from or row.seq in pinned)]
    shaped = shape_contents(chosen, ledger.shapings, session_id)
    notes = folded(ledger, chosen, session_id)
    out: list[Message] = []
    for row in chosen:
        if row.seq in notes.gone:
            continue
        if row.seq in notes.texts:
            out.append(Message("user", note(*notes.texts[row.seq])))
            continue
        content = contents(row, shaped.get(row.seq))
        if row.role == "assistant" and row.seq <= strip_to:
            content = _without_thinking(content)
        out.append(Message(row.role, content))
    return out


def _without_thinking(content: Content) -> Content:
    left = [block for block in content if block.get("type") not in THINKING]
    return content if len(left) == len(content) else tuple(left)


def _tagged(row: StoredMessage, shaped: Shaped | None) -> Content:
    """Every block names its row and its records: the passes carry keys they do not know along."""
    by = shaped.by if shaped else {}
    blocks = enumerate(shaped.content if shaped else row.content)
    return tuple({**block, _TAG: (row.seq, by.get(index, ()))} for index, block in blocks)


def _tagged_note(text: str, record: str) -> Content:
    return ({**text_block(text), _TAG: (None, (record,))},)


def usable_ledger(ledger: Ledger, rows: Sequence[StoredMessage]) -> tuple[Ledger, list[str]]:
    """The ledger without the records that cannot be rendered; and which these are, each with the reason.

    `rows` as for `apply`. Without its newest cut a view begins where the summary before says, or shows the whole
    history: the caller then loads what the new `kept_from_seq` asks for, and asks again, as these rows cannot tell.
    """
    ignored = [_unknown(shaping) for shaping in ledger.shapings if shaping.shape not in WORDINGS]
    shapings = tuple(shaping for shaping in ledger.shapings if shaping.shape in WORDINGS)
    faults = {fold.id: _misfolded(fold, rows) for fold in ledger.folds}
    ignored += filter(None, faults.values())
    folds = tuple(fold for fold in ledger.folds if not faults[fold.id])
    cut, summary = ledger.cut, ledger.summary
    if cut and (fault := _fault(cut, rows)):
        ignored.append(fault)
        cut = summary = summary if summary != cut else None
    usable = replace(ledger, shapings=shapings, folds=folds, cut=cut, summary=summary) if ignored else ledger
    return usable, ignored


def _misfolded(fold: Fold, rows: Sequence[StoredMessage]) -> str | None:
    """A part that tears a batch, or goes on to the last row, hides what it must not."""
    if fold.shape not in WORDINGS:
        return _unknown(fold)
    newest = rows[-1].seq if rows else 0
    for part in fold.parts:
        inside = [row for row in rows if part.from_seq <= row.seq <= part.to_seq and row.agent_visible]
        after = takewhile(lambda row: row.role == "user", (row for row in rows if row.seq > part.to_seq))
        calls = any(tool_uses(row.content) for row in inside[-1:])
        if not part.from_seq <= part.to_seq < newest or calls or _answers(inside) or _answers(after):
            return f"{fold.id}: rows {part.from_seq} to {part.to_seq} are no whole batches"
    return None


def _answers(rows: Iterable[StoredMessage]) -> bool:
    """Whether the first of them, up to an assistant's, hold results."""
    return any(tool_results(row.content) for row in takewhile(lambda row: row.role == "user", rows))


def _fault(cut: Cut, rows: Sequence[StoredMessage]) -> str | None:
    if cut.shape not in WORDINGS:
        return _unknown(cut)
    known = {row.seq: row for row in rows}
    missing = [seq for seq in (cut.kept_from_seq, *cut.pinned_seqs) if seq not in known]
    if missing:
        return f"{cut.id}: row {missing[0]} is missing"
    if any(known[seq].role != "user" for seq in cut.pinned_seqs):
        return f"{cut.id}: a pinned row is no user row"
    kept = (row for row in rows if row.seq >= cut.kept_from_seq and row.agent_visible)
    return f"{cut.id}: row {cut.kept_from_seq} is no legal cut" if _answers(kept) else None


def _unknown(record: Record) -> str:
    return f"{record.id}: shape version {record.shape} is unknown"
