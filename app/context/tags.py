"""Our tags around what others wrote: in it none of them can begin or end, however it is spelled."""

from collections.abc import Iterator
from itertools import islice
from unicodedata import normalize

# A model reads the wide and the small form as the character itself.
_OPENINGS = ("<", "\ufe64", "\uff1c")


def escaped(text: str, names: tuple[str, ...]) -> str:
    """`text` with the `<` before one of these names escaped, whatever case, accent, space or invisible character is
    used, and however many."""
    for opening in _OPENINGS:
        first, *rest = text.split(opening)
        text = first + "".join(("&lt;" if _begins_with(part, names) else opening) + part for part in rest)
    return text


def _begins_with(part: str, names: tuple[str, ...]) -> bool:
    return "".join(islice(_letters(part), max(map(len, names)))).startswith(names)


def _letters(part: str) -> Iterator[str]:
    for char in part:
        yield from (plain for plain in normalize("NFKD", char).lower() if plain.isalnum() or plain == "_")
