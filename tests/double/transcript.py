"""A recorded transcript as the model: each accepted main call gets the next recorded step."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests.double.exchange import Exchange
from tests.double.steps import Block, Reply, Script, call, say, text, think

IDENTIFIER = re.compile(
    r"toolu_\w+|call_\w+|https?://[^\s\"'<>)\]]+|(?:/[\w.@-]+){2,}|#\d+|\b\w+\(\)|\b\w+\.(?:py|ts|md|json)\b"
)
SUMMARY_CHARS = 1500


def steps(transcript: Mapping[str, Any], thinking: bool) -> Iterator[Reply]:
    """Every recorded step as a reply that is played whole. With `thinking` a block to be signed stands first."""
    for number, step in enumerate(step for turn in transcript["turns"] for step in turn["steps"]):
        blocks: list[Block] = []
        if thinking:
            blocks.append(think(step.get("thinking") or f"Thinking about step {number}."))
        if step["text"]:
            blocks.append(text(step["text"]))
        blocks += [call(use["id"], use["name"], use["input"]) for use in step["tool_uses"]]
        yield Reply(tuple(blocks), whole=True)


class Player:
    """Counts per user id, so that several sessions can play the same recording at once."""

    def __init__(self, transcript: Mapping[str, Any], thinking: bool, summarizer: Script) -> None:
        self._with = tuple(steps(transcript, thinking))
        self._without = tuple(steps(transcript, False)) if thinking else self._with
        self._played: Counter[str | None] = Counter()
        self.summarizer = summarizer

    def played(self, user_id: str | None) -> int:
        return self._played[user_id]

    def next(self, exchange: Exchange) -> Reply | None:
        """None behind the last recorded step."""
        at = self._played[exchange.user_id]
        if at >= len(self._with):
            return None
        self._played[exchange.user_id] += 1
        off = (exchange.body.get("thinking") or {}).get("type", "disabled") == "disabled"
        return (self._without if off else self._with)[at]


def extract(exchange: Exchange) -> Reply:
    """A summarizer that invents nothing: the headings of a briefing and the identifiers it was given, the most
    frequent first, first seen first."""
    words = "\n".join(_words(message["content"]) for message in exchange.body["messages"])
    lines, room = [], min(SUMMARY_CHARS, exchange.body["max_tokens"])
    for identifier, _ in Counter(IDENTIFIER.findall(words)).most_common():
        room -= len(identifier) + 3
        if room < 0:
            break
        lines.append(f"- {identifier}")
    return say(SUMMARY.format(identifiers="\n".join(lines) or "- none"))


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content)


SUMMARY = """# Conversation summary
## Goal
Go on with the recorded work.
## Constraints & Preferences
None stated.
## Progress
### Done
The steps recorded so far.
### In Progress
The newest request.
### Blocked
Nothing.
## Key Decisions
As recorded.
## Next Steps
Answer the newest request.
## Critical Context
{identifiers}
"""
