"""Identifiers of evicted rows: those a summary misses are kept in an index, with the lines where the file has them.

Texts are cut into words by translation and splitting, never by an expression that could backtrack.
"""

import builtins
import keyword
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from app.context.media_text import block_text, result_text
from app.conversation.messages import Block, StoredMessage, tool_results, tool_uses

Lines = Mapping[int, tuple[int, int]]

_LONGEST = 300
_HEX = frozenset("0123456789abcdefABCDEF")
_UUID_DASHES = (8, 13, 18, 23)
# What separates words; a bracket stays with the word it calls.
_APART = str.maketrans({**dict.fromkeys("\"'`<>)[]{},;|*\\^!\n\r\t", " "), "(": "( "})
_ORDINARY = {*keyword.kwlist, *dir(builtins), "switch", "catch", "function", "func", "fn", "sizeof", "typeof"}


def identifiers_in(text: str) -> Iterator[str]:
    """Paths, URLs, UUIDs, #numbers and names of functions, methods and files, each as often as it occurs."""
    for word in text.translate(_APART).split():
        if len(word) <= _LONGEST and not word.isalpha():
            yield from _in_word(word.rstrip(".,:?"))


def _in_word(word: str) -> Iterator[str]:
    if "://" in word:
        yield from _url(word)
        return
    for part in word.replace("=", ":").split(":"):
        if found := _identifier(part):
            yield found


def _url(word: str) -> Iterator[str]:
    scheme, _, rest = word.partition("://")
    scheme = scheme.rpartition("=")[2].rpartition("(")[2]
    if scheme.isalpha() and len(rest) > 2:
        yield f"{scheme}://{rest}"


def _identifier(word: str) -> str | None:
    if word.endswith("("):
        name = word[:-1].removeprefix("self.").removeprefix("this.")
        return name if _is_name(name) and name not in _ORDINARY else None
    if len(word) == 36 and _is_uuid(word):
        return word
    if "#" in word:
        number = word.rpartition("#")[2]
        return f"#{number}" if number.isdecimal() and len(number) <= 9 else None
    if "/" in word:
        return word if _is_path(word) else None
    return word if "." in word and _is_dotted(word) else None


def _is_name(word: str) -> bool:
    return len(word) > 1 and all(part.isidentifier() for part in word.split("."))


def _is_uuid(word: str) -> bool:
    dashes = all(word[at] == "-" for at in _UUID_DASHES)
    return dashes and all(char in _HEX for char in word.replace("-", ""))


def _is_path(word: str) -> bool:
    """Rooted, or with a file name of two parts, or at least three names: `and/or` is none."""
    names = [name for name in word.split("/") if name]
    if not any(char.isalpha() for char in word):
        return False
    return word.startswith(("/", "./", "../", "~/")) or "." in names[-1] or len(names) > 2


def _is_dotted(word: str) -> bool:
    """`Class.method` or `file.ext`; not a number, not `e.g`."""
    *names, last = word.lstrip(".").replace("-", "_").split(".")
    return len(word) > 3 and bool(names or word[0] == ".") and all(map(str.isidentifier, [*names, last]))


def index_of(
    rows: Sequence[StoredMessage],
    summary: str,
    lines_of_seq: Lines,
    cap_tokens: int,
    estimate: Callable[[str], int],
    left_out: tuple[int, int] | None,
) -> str:
    """Identifiers of `rows` that `summary` misses, most referenced first, within `cap_tokens`; the others are counted.

    Of equals the newer goes first. `lines_of_seq`: lines of each row in the offload file, empty without a file.
    `left_out`: rows that the summarizer did not read, which the index says.
    """
    missing = _missing(rows, summary)
    note = ["Messages {} to {} are in no summary.".format(*left_out)] if left_out else []

    def written(count: int) -> str:
        rest = len(missing) - count
        tail = [f"{rest} more identifiers are not listed."] if rest else []
        return "\n".join([*note, *_listed(missing[:count], lines_of_seq), *tail])

    # An identifier costs at least a token, so no more than the cap can fit.
    fitting = bisect_right(range(min(len(missing), cap_tokens) + 1), cap_tokens, key=lambda n: estimate(written(n))) - 1
    return written(fitting) if fitting >= 0 else ""


def _missing(rows: Sequence[StoredMessage], summary: str) -> list[tuple[str, int]]:
    """(how it is listed, newest seq that names it), best first. A block that repeats a name refers to it once."""
    told = {*identifiers_in(summary)}
    words = {word.rstrip("(.,:?") for word in summary.translate(_APART).split()}
    counts: Counter[str] = Counter()
    newest: dict[str, int] = {}
    outcomes: dict[str, str] = {}
    for row in filter(attrgetter("agent_visible"), rows):
        outcomes |= _outcomes(row)
        for block in row.content:
            found = {*_of_block(block)}
            counts.update(found)
            newest |= dict.fromkeys(found, row.seq)
    missed = [name for name in counts if name not in told and name not in words]
    missed.sort(key=lambda name: (-counts[name], -newest[name], name))
    return [(f"{name} {outcomes[name]}" if name in outcomes else name, newest[name]) for name in missed]


def _of_block(block: Block) -> Iterator[str]:
    match block:
        case {"type": "tool_use", "id": str(call_id)}:
            yield call_id
            for text in _texts(block.get("input")):
                yield from identifiers_in(text)
        case {"type": "tool_result", "tool_use_id": str(call_id)}:
            yield call_id
            yield from identifiers_in(result_text(block.get("content")))
        case {"type": "text" | "document"}:
            yield from identifiers_in(block_text(block))


def _texts(value: object) -> Iterator[str]:
    """Every text of a JSON value, without recursion: depth is the model's choice."""
    left = [value]
    while left:
        match left.pop():
            case str(text):
                yield text
            case dict(fields):
                left += reversed(fields.values())
            case list(items):
                left += reversed(items)


def _outcomes(row: StoredMessage) -> dict[str, str]:
    outcomes = {block["id"]: "unanswered" for block in tool_uses(row.content)}
    for block in tool_results(row.content):
        outcomes[block["tool_use_id"]] = "error" if block.get("is_error") else "ok"
    return outcomes


def _listed(found: Iterable[tuple[str, int]], lines_of_seq: Lines) -> Iterator[str]:
    """One line per row of the file that names some, in the order of the best of each."""
    ranks: dict[int, int] = {}
    for _, seq in found:
        ranks.setdefault(seq, len(ranks))
    ordered = sorted(found, key=lambda each: ranks[each[1]])
    for seq, group in groupby(ordered, key=lambda each: each[1]):
        where = "lines {}-{}: ".format(*lines_of_seq[seq]) if seq in lines_of_seq else ""
        yield f"- {where}{', '.join(name for name, _ in group)}"
