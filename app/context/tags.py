"""Our tags around what others wrote: in it none of them can begin or end, however it is spelled."""

from unicodedata import normalize

_LOOK = 64  # characters behind a `<` in which the name would have to stand


def escaped(text: str, names: tuple[str, ...]) -> str:
    """`text` with the `<` before one of these names escaped, whatever case, space or invisible character is used."""
    first, *rest = text.split("<")
    return first + "".join(("&lt;" if _begins_with(part, names) else "<") + part for part in rest)


def _begins_with(part: str, names: tuple[str, ...]) -> bool:
    letters = (char for char in normalize("NFKC", part[:_LOOK]).lower() if char.isalnum() or char == "_")
    return "".join(letters).startswith(names)
