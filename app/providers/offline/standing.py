"""Where a turn stands: its request, and what the calls made for it have answered. Read from the messages alone."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.context.note import is_note
from app.conversation.messages import Block, Message, is_blank, text_of, tool_results, tool_uses
from app.conversation.request import ModelRequest

_PREFIX = "off"
_GO_ON = {
    "continue",
    "go on",
    "keep going",
    "carry on",
    "proceed",
    "tiếp tục",
    "tiep tuc",
    "tiếp đi",
    "làm tiếp",
    "lam tiep",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call answered; `text` is None when the result is no longer in the messages."""

    text: str | None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """`outcomes`: by step, then in call order. `foreign`: the turn holds calls that this agent did not make."""

    request: str
    earlier: tuple[str, ...]
    outcomes: Mapping[int, tuple[Outcome, ...]]
    foreign: bool
    last_path: str | None


def standing_of(request: ModelRequest) -> Standing:
    texts = [(at, text) for at, message in enumerate(request.messages) for text in _user_texts(message)]
    while len(texts) > 1 and " ".join(texts[-1][1].lower().split()).rstrip(".!") in _GO_ON:
        texts.pop()
    start, newest = texts[-1] if texts else (0, "")
    calls, foreign = _calls_after(request.messages[start:])
    return Standing(newest, tuple(text for _, text in texts[:-1]), calls, foreign, _last_path(request.messages[:start]))


def _user_texts(message: Message) -> list[str]:
    """Neighbouring user rows are merged into one message, so each of its texts is a request of its own."""
    if message.role != "user":
        return []
    texts = (block["text"] for block in message.content if block.get("type") == "text" and not is_blank(block))
    return [text for text in texts if not is_note(text)]


def _calls_after(messages: Sequence[Message]) -> tuple[dict[int, tuple[Outcome, ...]], bool]:
    answers = {block["tool_use_id"]: _outcome(block) for message in messages for block in tool_results(message.content)}
    uses = [use["id"] for message in messages for use in tool_uses(message.content)]
    places = {use: _place(use) for use in uses}
    found: dict[int, dict[int, Outcome]] = {}
    for use, place in places.items():
        if place is not None:
            found.setdefault(place[0], {})[place[1]] = answers.get(use, Outcome(None))
    return {step: _without_gaps(parts) for step, parts in found.items()}, None in places.values()


def _without_gaps(parts: Mapping[int, Outcome]) -> tuple[Outcome, ...]:
    return tuple(parts.get(part, Outcome(None)) for part in range(max(parts) + 1))


def _outcome(block: Block) -> Outcome:
    content = block.get("content", "")
    text = content if isinstance(content, str) else text_of(content)
    return Outcome(text, bool(block.get("is_error")))


def _last_path(messages: Sequence[Message]) -> str | None:
    """The file that an earlier call read or changed last."""
    for message in reversed(messages):
        for use in reversed(tool_uses(message.content)):
            path = use.get("input", {}).get("path")
            if use.get("name") in ("read_file", "write_file", "edit_file") and isinstance(path, str):
                return path
    return None


def call_id(request: ModelRequest, step: int, part: int) -> str:
    """Unique in the session, for the digest is of all messages; it names the place, so that progress is found by it."""
    text = json.dumps([[message.role, message.content] for message in request.messages])
    digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return f"{_PREFIX}_{digest}_{step}_{part}"


_MAX_PLACE_DIGITS = 4


def _place(identifier: object) -> tuple[int, int] | None:
    parts = str(identifier).split("_")
    if len(parts) != 4 or parts[0] != _PREFIX:
        return None
    digits = all(part.isascii() and part.isdigit() and len(part) <= _MAX_PLACE_DIGITS for part in parts[2:])
    return (int(parts[2]), int(parts[3])) if digits else None
