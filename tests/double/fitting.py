"""How much of a scripted reply the model may say: max_tokens and the window cut it, as the API does."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.double.steps import RawJson
from tests.double.tokens import block_tokens
from tests.double.wire import input_json


def spent(blocks: Sequence[Mapping[str, Any]], rate: float) -> int:
    return sum(block_tokens(block, rate) for block in blocks)


def fit(blocks: Sequence[Mapping[str, Any]], budget: int, rate: float) -> list[Mapping[str, Any]]:
    """The blocks whole up to `budget` tokens, the one that goes over cut short, the rest left out."""
    kept: list[Mapping[str, Any]] = []
    for block in blocks:
        tokens = block_tokens(block, rate)
        if tokens > budget:
            return [*kept, *shortened(block, budget, rate)]
        kept.append(block)
        budget -= tokens
    return kept


def shortened(block: Mapping[str, Any], budget: int, rate: float) -> list[Mapping[str, Any]]:
    room = int(budget * rate)
    if block["type"] == "text" and room:
        return [{**block, "text": first_bytes(block["text"], room)}]
    if block["type"] == "thinking" and room:
        return [{**block, "thinking": first_bytes(block["thinking"], room), "signature": ""}]
    room -= len(block.get("name", ""))
    if block["type"] == "tool_use" and room > 0:
        return [{**block, "input": RawJson(first_bytes(input_json(block), room))}]
    return []


def first_bytes(words: str, count: int) -> str:
    return words.encode("utf-8", "surrogatepass")[:count].decode("utf-8", "ignore")
