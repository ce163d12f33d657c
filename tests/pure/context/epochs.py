"""Random epochs: any that can be stored, and runs of them as a session makes them."""

from itertools import count
from typing import Any

from hypothesis import strategies as st

from app.conversation.messages import text_block
from app.conversation.records import Cause, Cut, Epoch, Fold, Part, Preamble, Reason, Shaping, Tier
from app.conversation.request import ToolDefinition
from app.conversation.usage import Usage

words = st.text(max_size=12)
whole = st.integers(0, 10**12)
pairs = st.lists(st.tuples(whole, whole), max_size=3).map(tuple)
usages = st.none() | st.builds(Usage, whole, whole, whole, whole, whole)
leaves: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))
objects = st.dictionaries(words, values, max_size=4)

any_shaping = st.builds(Shaping, words, st.sampled_from(Tier), st.just(1), whole, pairs, pairs, pairs)
any_cut = st.builds(
    Cut,
    id=words,
    tier=st.sampled_from(Tier),
    shape=st.just(1),
    reason=st.sampled_from(Reason),
    run_id=words,
    turn=whole,
    kept_from_seq=whole,
    pinned_seqs=st.lists(whole, max_size=3).map(tuple),
    summarized_to_seq=whole,
    summary=words,
    index=words,
    path=st.none() | words,
    lines=st.none() | st.tuples(whole, whole),
    tokens_before=whole,
    tokens_after=whole,
    evicted=whole,
    model=st.none() | words,
    usage=usages,
)
any_fold = st.builds(
    Fold,
    id=words,
    tier=st.sampled_from(Tier),
    shape=st.just(1),
    parts=st.lists(st.builds(Part, whole, whole, words), max_size=3).map(tuple),
    pinned_seqs=st.lists(whole, max_size=3).map(tuple),
    path=words,
    evicted=whole,
    tokens_before=whole,
    tokens_after=whole,
)
any_preamble = st.builds(
    Preamble,
    key=words,
    system=st.lists(objects, max_size=3).map(tuple),
    stable=whole,
    tools=st.lists(st.builds(ToolDefinition, words, words, objects), max_size=3).map(tuple),
)
any_epoch = st.builds(
    Epoch,
    id=words,
    cause=st.sampled_from(Cause),
    records=st.lists(any_shaping | any_cut | any_fold, max_size=4).map(tuple),
    preamble=st.none() | any_preamble,
    strip_thinking_to_seq=whole,
)


def micro(number: int, first: int, last: int, tier: Tier = Tier.MICRO_COMPACTION) -> Shaping:
    return Shaping(f"rec_s{number}", tier, 1, 120, spans=((first, last),))


def cut(number: int, kept_from: int, summary: str = "", pinned: tuple[int, ...] = ()) -> Cut:
    tier = Tier.SUMMARIZATION if summary else Tier.MECHANICAL_TRUNCATION
    return Cut(f"rec_c{number}", tier, 1, Reason.THRESHOLD, "run_1", 1, kept_from, pinned, summary=summary)


def fold(number: int, first: int, last: int) -> Fold:
    return Fold(f"rec_f{number}", Tier.MESSAGE_CAP, 1, (Part(first, last),), (), "/conversation_history/s.md", 1)


def preamble(key: str) -> Preamble:
    return Preamble(
        key, (text_block(f"You are {key}."),), 1, (ToolDefinition("read_file", "Reads.", {"b": 1, "a": 2}),)
    )


@st.composite
def careers(draw: st.DrawFn) -> list[tuple[str, Epoch]]:
    """(run id, epoch), as a session makes them: rows only leave the view, and several epochs fall into one run."""
    run, seq, kept, strip, pin = 1, 1, 1, 0, 1
    numbers = count(1)
    out: list[tuple[str, Epoch]] = []
    for _ in range(draw(st.integers(1, 12))):
        number, seq = next(numbers), seq + draw(st.integers(1, 20))
        run, pin = draw(st.sampled_from(((run, pin), (run + 1, seq))))
        records: list[Shaping | Cut | Fold] = []
        if draw(st.booleans()):
            first = draw(st.integers(kept, seq))
            tier = draw(st.sampled_from((Tier.MICRO_COMPACTION, Tier.FIT, Tier.RESULT_OFFLOAD)))
            records.append(micro(number, first, draw(st.integers(first, seq)), tier))
        if draw(st.booleans()):
            kept = draw(st.integers(kept, seq))
            records.append(cut(number, kept, draw(st.sampled_from(("", f"summary {number}"))), (pin,)))
        if draw(st.booleans()):
            first = draw(st.integers(kept, seq))
            records.append(fold(number, first, draw(st.integers(first, seq))))
        strip = draw(st.sampled_from((strip, strip, seq)))
        shown = draw(st.sampled_from((None, preamble(f"key {number}"))))
        epoch = Epoch(f"rec_e{number}", draw(st.sampled_from(Cause)), tuple(records), shown, strip)
        out.append((f"run_{run}", epoch))
    return out
