"""Who said what in a quoted conversation, whatever marks its messages: headings, tags, brackets or `User:`."""

from collections.abc import Iterator
from dataclasses import dataclass

_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "agent": "assistant",
    "model": "assistant",
    "tool": "tool",
    "tool_result": "tool",
    "tool_results": "tool",
    "result": "tool",
    "tool_use": "call",
    "tool_call": "call",
    "call": "call",
    "summary": "summary",
}
_LONGEST_MARK = 100
_OPENERS = ("#", "[", "<", "*", "-", "(", "=", "|", "`")
_APART = str.maketrans(dict.fromkeys("#[]<>*-()=|:\"'`,.·—–/", " "))


@dataclass(frozen=True, slots=True)
class Utterance:
    """`role`: user, assistant, call, tool or summary; empty when nobody is named. `mark`: the line that names it."""

    role: str
    mark: str
    lines: tuple[str, ...]


def utterances(text: str) -> list[Utterance]:
    """Text before the first mark and after a closing tag belongs to nobody; without any mark all of it does."""
    found: list[Utterance] = []
    role, mark, lines = "", "", list[str]()
    for line in text.split("\n"):
        marked, rest = _role_of(line)
        if marked is None:
            lines.append(line)
            continue
        found.append(Utterance(role, mark, tuple(lines)))
        role, mark, lines = marked, line.strip(), [rest] if rest else []
    found.append(Utterance(role, mark, tuple(lines)))
    return list(_filled(found))


def _filled(found: list[Utterance]) -> Iterator[Utterance]:
    for each in found:
        if each.role or any(line.strip() for line in each.lines):
            yield each


def _role_of(line: str) -> tuple[str | None, str]:
    """(role, text after the mark on the same line); (None, "") when the line is no mark."""
    bare = line.strip()
    if bare.startswith("</"):
        return "", ""
    head, colon, rest = bare.partition(":")
    if colon and head.strip("*_# ").lower() in _ROLES:
        return _ROLES[head.strip("*_# ").lower()], rest.strip("* ")
    if bare.lower() == "# conversation summary":
        return "summary", ""
    if not bare.startswith(_OPENERS) or len(bare) > _LONGEST_MARK or bare.startswith(("- ", "* ", "```")):
        return None, ""
    return _first_role(bare), ""


def _first_role(bare: str) -> str | None:
    """The most telling role in `## 12 · user`, `[3] assistant:` or `<message seq="3" role="tool">`."""
    names = [word for word in bare.lower().translate(_APART).split()[:8] if word in _ROLES]
    for telling in ("call", "tool"):
        if telling in (_ROLES[name] for name in names):
            return telling
    return _ROLES[names[0]] if names else None
