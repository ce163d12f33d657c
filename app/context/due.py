"""Which shapings a block is due for."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.conversation.messages import Role, StoredMessage
from app.conversation.records import Block, Shaping, Tier

# What a tier shapes: results, user texts and media, or arguments.
_TIERS: Mapping[Role, frozenset[Tier]] = {
    "user": frozenset({Tier.RESULT_OFFLOAD, Tier.MICRO_COMPACTION, Tier.FIT, Tier.MEDIA_SHEDDING}),
    "assistant": frozenset({Tier.ARGUMENT_TRUNCATION, Tier.FIT}),
}


@dataclass(frozen=True, slots=True)
class Due:
    """One shaping on one row: all its blocks but `kept`, or none but `blocks`."""

    shaping: Shaping
    whole: bool
    blocks: frozenset[Block]
    kept: frozenset[Block]

    def covers(self, block: Block) -> bool:
        return (self.whole and block not in self.kept) or block in self.blocks


def due_rows(rows: Sequence[StoredMessage], shapings: Iterable[Shaping]) -> dict[int, list[Due]]:
    """For each seq that a shaping may touch, those that may, oldest first. `rows` ascend by seq."""
    due: dict[int, list[Due]] = {}
    seqs = [row.seq for row in rows]
    for shaping in shapings:
        blocks, kept = frozenset(shaping.blocks), frozenset(shaping.kept)
        whole, named = Due(shaping, True, blocks, kept), Due(shaping, False, blocks, kept)
        spanned = _places(seqs, shaping.spans)
        touched = spanned | _places(seqs, {(seq, seq) for seq, _ in blocks})
        for row, place in ((rows[place], place) for place in touched):
            if shaping.tier in _TIERS[row.role]:
                due.setdefault(row.seq, []).append(whole if place in spanned else named)
    return due


def _places(seqs: Sequence[int], spans: Iterable[tuple[int, int]]) -> set[int]:
    """Places in `seqs`, which ascend, of those in any of the spans."""
    ranges = (range(bisect_left(seqs, first), bisect_right(seqs, last)) for first, last in spans)
    return set().union(*ranges)
