"""A text of somebody else without what it repeats of the conversation."""

from collections.abc import Iterable

MIN_CHARS = 12  # shorter repetitions are words that any sentence may have
GAP = "[...]"


def without_echo(text: str, said: Iterable[str]) -> str:
    """`text` with every stretch that one of the texts `said` holds too, of 12 characters or more, left out."""
    said = tuple(said)
    kept: list[str] = []
    place = 0
    while place < len(text):
        end = _end_of_echo(text, place, said)
        if end > place:
            kept.append(GAP)
            place = end
        else:
            kept.append(text[place])
            place += 1
    return "".join(kept)


def _end_of_echo(text: str, start: int, said: tuple[str, ...]) -> int:
    """Where the longest repetition that begins at `start` ends; `start` when there is none."""
    best = start
    for other in said:
        length = max(MIN_CHARS, best - start)
        while start + length <= len(text) and text[start : start + length] in other:
            best = start + length
            length += 1
    return best
