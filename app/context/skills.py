"""A skill's front matter, and the system block that lists the skills.

The front matter is a small part of YAML, read so that every YAML reader would read the same: `key: value` lines between
two lines `---`. What the part does not know is refused by name and line, or skipped where the key is none of ours.
"""

import re
from collections.abc import Sequence

from app.context.tags import escaped
from app.conversation.messages import Block, Content, text_block
from app.conversation.skills import Skill

MAX_DESCRIPTION_CHARS = 1024
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAX_NAME_CHARS = 64
FENCE = "---"
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*))?")
_TAG = "skills"
_OPENING, _CLOSING = f"<{_TAG}>", f"</{_TAG}>"
_INTRODUCTION = (
    "Skills are instructions for certain tasks. When a task is one of those described here, load its skill with"
    " load_skill before you begin, and follow it."
)


def parse_skill(text: str, folder: str) -> Skill:
    """Raises ValueError with the rule that the front matter of this SKILL.md breaks."""
    fields = _fields(text)
    name, description = fields.get("name", ""), fields.get("description", "")
    if name != folder or not NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        raise ValueError(f"name must be that of its folder: 1 to {MAX_NAME_CHARS} of a-z 0-9, parted by single -")
    if not description or len(description) > MAX_DESCRIPTION_CHARS or not description.isprintable():
        raise ValueError(f"description must be 1 to {MAX_DESCRIPTION_CHARS} characters on one line")
    return Skill(name, description)


def body_of(text: str) -> str:
    """What stands behind the front matter of a SKILL.md; all of it without one."""
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), -1)
    return "".join(lines[end + 1 :]).strip("\n")


def _fields(text: str) -> dict[str, str]:
    first, *lines = [line.rstrip() for line in text.removeprefix("\ufeff").splitlines()] or [""]
    if first != FENCE or FENCE not in lines:
        raise ValueError(f"front matter must stand at the top, between two lines {FENCE}")
    found: dict[str, str] = {}
    key = ""
    for number, line in enumerate(lines[: lines.index(FENCE)], 2):
        if not line or line.startswith("#"):
            continue
        if line[0] in " \t-" and key not in ("", "name", "description"):
            continue  # a list or a map below a key that is not ours
        match = _KEY.fullmatch(line)
        if match is None or match[1] in found:
            raise ValueError(f"line {number} must be `key: value`, with each key once")
        key = match[1]
        found[key] = _value(key, (match[2] or "").strip(), number)
    return found


def _value(key: str, text: str, line: int) -> str:
    if key not in ("name", "description"):
        return text
    quote = text[:1]
    if quote in ("'", '"') and len(text) > 1 and text.endswith(quote):
        inner = text[1:-1].replace("''", "") if quote == "'" else text[1:-1]
        if quote in inner or (quote == '"' and "\\" in inner):
            raise ValueError(f"line {line}: a text in {quote} may not hold {quote} or, in double quotes, a backslash")
        return text[1:-1].replace("''", "'") if quote == "'" else inner
    if (text and text[0] in "!&*?|>%@`\"'{}[],#-") or ": " in text or " #" in text or text.endswith(":"):
        raise ValueError(f"line {line}: {key} must be one line, in quotes when it holds `: ` or ` #` or begins oddly")
    return text


def listing(skills: Sequence[Skill]) -> Content:
    """The block that lists them; none without skills."""
    if not skills:
        return ()
    lines = (f"- {skill.name}: {escaped(skill.description, (_TAG,))}" for skill in skills)
    return (text_block("\n".join([_OPENING, _INTRODUCTION, *lines, _CLOSING])),)


def is_listing(block: Block) -> bool:
    return str(block.get("text", "")).startswith(_OPENING)
