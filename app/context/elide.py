"""Plans of the tiers that shorten blocks where they stand. Each returns one Shaping, or None when nothing is to do.

`rows` are the view's rows as they are shown now, oldest first, so that nothing is shortened twice; `below_seq` is where
the kept tail begins; `estimate` gives the tokens of a text. Every block keeps its place, so batches stay whole.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from operator import itemgetter

from app.context.blocks import MEDIA, result_text
from app.context.cuts import closed_batches, shown
from app.context.markers import utf8_size
from app.context.pins import newest_request
from app.conversation.messages import Block, StoredMessage, text_of, tool_results, tool_uses
from app.conversation.records import SHAPE_VERSION, Shaping, Tier
from app.conversation.records import Block as Address

Rows = Sequence[StoredMessage]
Estimate = Callable[[str], int]

MICRO_LIMIT = 120  # characters: a placeholder is nearly as long
MICRO_EXEMPT = 3  # newest batches
PREVIEW = 2_000  # characters of head and tail together
PREVIEW_WORDS = 400  # characters around them, at most: a text that is not longer gains nothing
ARGUMENT_START = 200  # characters of a shortened argument that stay
MARKER = 100  # tokens of a marker's own words, path and size: an allowance
BATCH_CHARS, RESULT_CHARS = 200_000, 30_000
USER_TEXT_FRAC = 0.25


def plan_arguments(rows: Rows, below_seq: int, limit_bytes: int, record_id: str) -> Shaping | None:
    """String arguments over `limit_bytes` of UTF-8, at any depth."""
    older = (row for row in shown(rows) if row.seq < below_seq and row.role == "assistant")
    long = [row.seq for row in older if any(_long_strings(call, limit_bytes) for call in tool_uses(row.content))]
    return _span(record_id, Tier.ARGUMENT_TRUNCATION, limit_bytes, long)


def plan_micro(rows: Rows, below_seq: int, record_id: str) -> Shaping | None:
    """Bodies of seen results, errors too; the newest batches are exempt."""
    return _span(record_id, Tier.MICRO_COMPACTION, MICRO_LIMIT, [row.seq for row in _micro_rows(rows, below_seq)])


def plan_micro_down_to(rows: Rows, below_seq: int, to_free: int, estimate: Estimate, record_id: str) -> Shaping | None:
    """As `plan_micro`, oldest rows first, until about `to_free` tokens are freed (or all that can be)."""
    freed, seqs = 0, []
    for row in _micro_rows(rows, below_seq):
        if freed >= to_free:
            break
        freed += sum(max(0, estimate(text) - MARKER) for text in _long_bodies(row))
        seqs.append(row.seq)
    return _span(record_id, Tier.MICRO_COMPACTION, MICRO_LIMIT, seqs)


def plan_offload(
    rows: Rows, batch_tokens: float, result_tokens: float, estimate: Estimate, record_id: str
) -> Shaping | None:
    """Results that were never sent, when their batch is too large: largest first until it is not.

    A batch is too large over 200,000 characters or `batch_tokens`; only results over 30,000 characters or
    `result_tokens` are taken.
    """
    bodies = [(address, result_text(block)) for address, block in _unseen_results(rows)]
    sized = sorted(((estimate(body), len(body), address) for address, body in bodies), reverse=True)
    tokens, chars = sum(map(itemgetter(0), sized)), sum(map(itemgetter(1), sized))
    chosen: list[Address] = []
    for size, length, address in sized:
        if tokens <= batch_tokens and chars <= BATCH_CHARS:
            break
        if length > PREVIEW and (length > RESULT_CHARS or size > result_tokens):
            chosen.append(address)
            tokens -= size - size * PREVIEW // length
            chars -= length - PREVIEW
    return _blocks(record_id, Tier.RESULT_OFFLOAD, chosen)


def plan_fit(rows: Rows, over: int, window: int, estimate: Estimate, record_id: str) -> Shaping | None:
    """Blocks to preview until about `over` tokens are freed: results and arguments of the newest closed batch, then
    user texts over a quarter of the window that an assistant has read; largest first."""
    freed = 0
    chosen: list[Address] = []
    for candidates in (_newest_batch(rows, estimate), _large_user_texts(rows, window, estimate)):
        for gain, address in sorted(candidates, reverse=True):
            if freed < over and gain > 0:
                chosen.append(address)
                freed += gain
    return _blocks(record_id, Tier.FIT, chosen)


def plan_media(rows: Rows, newest_only: bool, record_id: str) -> Shaping | None:
    """Media older than the newest turn, or (`newest_only`) than the newest row."""
    seen = shown(rows)
    return _media(seen, seen[-1].seq if newest_only else newest_request(rows) or 0, record_id)


def plan_all_media(rows: Rows, record_id: str) -> Shaping | None:
    """The newest message's media too."""
    return _media(shown(rows), rows[-1].seq + 1, record_id)


def _span(record_id: str, tier: Tier, limit: int, seqs: Sequence[int]) -> Shaping | None:
    """One span, from the first row that the tier changes to the last."""
    return Shaping(record_id, tier, SHAPE_VERSION, limit, spans=((seqs[0], seqs[-1]),)) if seqs else None


def _blocks(record_id: str, tier: Tier, blocks: Iterable[Address]) -> Shaping | None:
    ordered = tuple(sorted(blocks))
    return Shaping(record_id, tier, SHAPE_VERSION, PREVIEW, blocks=ordered) if ordered else None


def _media(seen: Rows, below_seq: int, record_id: str) -> Shaping | None:
    holders = [row.seq for row in seen if row.seq < below_seq and _has_media(row.content)]
    return _span(record_id, Tier.MEDIA_SHEDDING, 0, holders)


def _has_media(content: Iterable[Block]) -> bool:
    return any(block.get("type") in MEDIA or _has_media(_parts(block)) for block in content)


def _parts(block: Block) -> Sequence[Block]:
    content = block.get("content")
    return content if block.get("type") == "tool_result" and isinstance(content, list) else ()


def _micro_rows(rows: Rows, below_seq: int) -> list[StoredMessage]:
    """Rows with a long result before the kept tail and the exempt batches; the newest of these is the unseen one."""
    batches = closed_batches(rows)
    if len(batches) <= MICRO_EXEMPT:
        return []
    bound = min(below_seq, batches[-MICRO_EXEMPT][0])
    return [row for row in shown(rows) if row.seq < bound and _long_bodies(row)]


def _long_bodies(row: StoredMessage) -> list[str]:
    return [body for body in map(result_text, tool_results(row.content)) if len(body) > MICRO_LIMIT]


def _long_strings(call: Block, limit_bytes: int) -> list[str]:
    return [text for text in _strings(call.get("input")) if utf8_size(text) > limit_bytes]


def _strings(value: object) -> Iterator[str]:
    """Every string value at any depth, keys left out; a loop, because a model may nest deeper than Python recurses."""
    stack = [value]
    while stack:
        match stack.pop():
            case str(text):
                yield text
            case dict(items):
                stack.extend(items.values())
            case list(items):
                stack.extend(items)


def _addresses(rows: Iterable[StoredMessage], kind: str) -> list[tuple[Address, Block]]:
    return [((row.seq, i), block) for row in rows for i, block in enumerate(row.content) if block.get("type") == kind]


def _unseen_results(rows: Rows) -> list[tuple[Address, Block]]:
    seen = (row for row in reversed(rows) if row.agent_visible)
    return _addresses(takewhile(lambda row: row.role == "user", seen), "tool_result")


def _newest_batch(rows: Rows, estimate: Estimate) -> list[tuple[int, Address]]:
    """(tokens that a preview frees, address) of each result and call."""
    *_, (start, end) = closed_batches(rows) or [(0, -1)]
    batch = [row for row in shown(rows) if start <= row.seq <= end]
    gains = [(_gain(result_text(block), estimate), at) for at, block in _addresses(batch, "tool_result")]
    for at, call in _addresses(batch, "tool_use"):
        long = _long_strings(call, PREVIEW)
        gains.append((sum(estimate(text) - estimate(text[:ARGUMENT_START]) - MARKER for text in long), at))
    return gains


def _large_user_texts(rows: Rows, window: int, estimate: Estimate) -> list[tuple[int, Address]]:
    seen = shown(rows)
    read_to = next((row.seq for row in reversed(seen) if row.role == "assistant"), 0)
    users = (row for row in seen if row.role == "user" and row.seq < read_to)
    large = [row for row in users if estimate(text_of(row.content)) > window * USER_TEXT_FRAC]
    return [(_gain(block["text"], estimate), at) for at, block in _addresses(large, "text")]


def _gain(text: str, estimate: Estimate) -> int:
    if len(text) <= PREVIEW + PREVIEW_WORDS:
        return 0
    return estimate(text) - estimate(text[:PREVIEW]) - MARKER
