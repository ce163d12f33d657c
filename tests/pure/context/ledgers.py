"""Random ledgers over random transcripts, with texts long enough for markers to be shorter."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from app.context.cuts import legal_cuts
from app.conversation.messages import Block, StoredMessage
from app.conversation.records import Cut, Fold, Ledger, Part, Reason, Shaping, Tier
from tests.pure.context.histories import histories

SESSION = "8f14e45f-ceea-467f-a8f1-000000000001"
MARK = "hango-dcdfa0a84cc4512a"
TIERS = (
    Tier.RESULT_OFFLOAD,
    Tier.ARGUMENT_TRUNCATION,
    Tier.MICRO_COMPACTION,
    Tier.FIT,
    Tier.MEDIA_SHEDDING,
)
PICTURE: Block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR" * 2000}}
PDF: Block = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBER" * 2000}}


def shaping(tier: Tier, *, limit: int = 0, id: str = "s1", **where: Any) -> Shaping:
    return Shaping(id, tier, 1, limit, **({"spans": ((1, 1000),)} | where))


def summary_cut(kept_from: int, *, summary: str = "We did much.", **fields: Any) -> Cut:
    known = {"pinned_seqs": (), "summarized_to_seq": kept_from - 1, "summary": summary, "reason": Reason.THRESHOLD}
    return _cut("sum1", Tier.SUMMARIZATION, kept_from, known | fields)


def truncation(kept_from: int, **fields: Any) -> Cut:
    return _cut("cut1", Tier.MECHANICAL_TRUNCATION, kept_from, {"pinned_seqs": (), "reason": Reason.TRUNCATE} | fields)


def _cut(id: str, tier: Tier, kept_from: int, fields: dict[str, Any]) -> Cut:
    return Cut(id, tier, 1, run_id="run_1", turn=1, kept_from_seq=kept_from, **fields)


def _lengthened(value: Any, filler: str) -> Any:
    """Long texts, results and arguments, wherever there was a text that is not blank."""
    match value:
        case {"type": "text", "text": str(text)} if text.strip():
            return {**value, "text": text + filler}
        case {"type": "tool_result", "content": str(text)} if text:
            return {**value, "content": text + filler}
        case {"type": "tool_result", "content": list(parts)}:
            return {**value, "content": [_lengthened(part, filler) for part in parts]}
        case {"type": "tool_use"}:
            return {**value, "input": {"path": "/workspace/a", "edits": [{"old": filler, "n": 1}, None]}}
        case {"type": "image"} if filler:
            return PDF if len(filler) % 2 else PICTURE
    return value


@st.composite
def long_histories(draw: st.DrawFn) -> list[StoredMessage]:
    fillers = st.sampled_from(("", "x", "short" * 40, "a line\n" * 700, "漢" * 3001))
    rows = draw(histories())
    fills = [draw(fillers) for _ in rows]
    return [
        replace(row, content=tuple(_lengthened(block, fill) for block in row.content))
        for row, fill in zip(rows, fills, strict=True)
    ]


def shapings(rows: Sequence[StoredMessage]) -> st.SearchStrategy[tuple[Shaping, ...]]:
    seqs = st.integers(1, len(rows) + 2)
    blocks = st.lists(st.tuples(seqs, st.integers(0, 3)), max_size=3).map(tuple)
    spans = st.lists(st.tuples(seqs, seqs), max_size=2).map(tuple)
    one = st.builds(
        Shaping,
        id=st.uuids().map(str),
        tier=st.sampled_from(TIERS),
        shape=st.just(1),
        limit=st.sampled_from((0, 120, 1750, 30_000)),
        spans=st.one_of(st.just(((1, len(rows)),)), spans),
        kept=blocks,
        blocks=blocks,
    )
    return st.lists(one, max_size=4).map(tuple)


def own_text(row: StoredMessage) -> bool:
    texts = [block["text"] for block in row.content if block["type"] == "text"]
    return row.agent_visible and row.role == "user" and any(map(str.strip, texts))


@st.composite
def folds(draw: st.DrawFn, rows: Sequence[StoredMessage], kept_from: int) -> tuple[Fold, ...]:
    """None, or one or two over any legal stretch of the kept part; a later one may cover an earlier one."""
    legal = [seq for seq in legal_cuts(rows) if seq >= kept_from]
    made: list[Fold] = []
    for number in range(draw(st.integers(0, 2)) if len(legal) > 1 else 0):
        first, after = sorted(draw(st.sets(st.sampled_from(legal), min_size=2, max_size=2)))
        part = Part(first, after - 1, draw(st.sampled_from(("", "- read it, fine"))))
        torn = any(p.from_seq < first <= p.to_seq < part.to_seq for f in made for p in f.parts)
        pinnable = [row.seq for row in rows if first <= row.seq < after and own_text(row)]
        pins = tuple(draw(st.sets(st.sampled_from(pinnable), max_size=1))) if pinnable else ()
        tier = draw(st.sampled_from((Tier.MESSAGE_CAP, Tier.TOOL_PAIR_SUMMARY)))
        if not torn:
            made.append(Fold(f"fold{number}", tier, 1, (part,), pins, "/conversation_history/s.md", 1))
    return tuple(made)


@st.composite
def ledgers(draw: st.DrawFn, rows: Sequence[StoredMessage]) -> Ledger:
    """Any shapings, a legal cut or none, pins below it, thinking stripped up to anywhere."""
    legal = legal_cuts(rows)
    kept_from = draw(st.one_of(st.just(legal[-1]), st.sampled_from(legal)))
    pinnable = [row.seq for row in rows if row.seq < kept_from and own_text(row)]
    pins = tuple(sorted(draw(st.sets(st.sampled_from(pinnable), min_size=1, max_size=3)))) if pinnable else ()
    summary = summary_cut(kept_from, pinned_seqs=pins, path=draw(st.sampled_from((None, "/conversation_history/s.md"))))
    later = truncation(kept_from, pinned_seqs=pins)
    cut = draw(st.sampled_from((None, summary, later)))
    return Ledger(
        shapings=draw(shapings(rows)),
        folds=draw(folds(rows, kept_from if cut else 1)),
        summary=draw(st.sampled_from((summary, None))) if cut is later else cut,
        cut=cut,
        strip_thinking_to_seq=draw(st.integers(0, len(rows))),
    )


@st.composite
def kept(draw: st.DrawFn) -> tuple[list[StoredMessage], Ledger]:
    rows = draw(long_histories())
    return rows, draw(ledgers(rows))


def size_of(blocks: Sequence[Block]) -> int:
    """Characters of all texts; a picture or file counts flat, since no text says what it costs."""
    return sum(map(_size, blocks))


def _size(block: Block) -> int:
    match block:
        case {"type": "text", "text": str(text)}:
            return len(text)
        case {"type": "image" | "document"}:
            return 10_000
        case {"type": "tool_result", "content": list(parts)}:
            return size_of(parts)
        case {"type": "tool_result", "content": str(text)}:
            return len(text)
    return len(json.dumps(block, ensure_ascii=False))
