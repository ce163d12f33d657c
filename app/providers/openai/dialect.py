"""What one model of one server takes. Servers differ, and say so only by refusing: each refusal teaches one thing."""

import re
from dataclasses import dataclass, replace
from typing import Literal

LimitField = Literal["max_tokens", "max_completion_tokens"]

# OpenAI's limit for the id of a call; Mistral wants nine letters and digits.
LONGEST_ID, SHORT_ID = 40, 9

_MOST_OUTPUT = re.compile(
    r"supports at most (?P<a>\d{1,9}) completion tokens|valid range of max_tokens is \[1, (?P<b>\d{1,9})\]"
    r"|max_(?:completion_|new_)?tokens`? must be (?:<=|less than or equal to) `?(?P<c>\d{1,9})",
    re.IGNORECASE,
)
_USER = re.compile(r"supplied: user\b|\buser\b['\"]?( is not|[,:)\]])", re.IGNORECASE)
_LIMIT = re.compile(r"\bmax_(completion_)?tokens\b")
_NO_IMAGES = re.compile(
    r"image_url.*only supported|image input|not a multimodal|at most 0 image|images? (is|are) not supported"
    r"|(not|n't) support (image|vision)|content must be a string",
    re.IGNORECASE,
)
_NO_FILES = re.compile(
    r"part type: file|unsupported content\[\]\.type|'file'|files? (is|are) not supported|(not|n't) support (file|pdf)",
    re.IGNORECASE,
)
_SHORT_IDS = re.compile(r"tool call id .*length of 9", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"unsupported|unrecognized|unknown|extra|unexpected|not (supported|permitted|allowed)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """`limits`: fields for the most tokens of an answer that were not refused yet; the first is sent.
    `most_output`: of them, None when the server has named none."""

    limits: tuple[LimitField, ...]
    most_output: int | None = None
    usage: bool = True
    user: bool = True
    images: bool = True
    files: bool = True
    id_chars: int = LONGEST_ID

    def after(self, status: int, message: str) -> "Dialect | None":
        """What to speak after this refusal; None when it is about something else. Ends: nothing is taken back."""
        if status not in (400, 404, 415, 422, 500):
            return None
        changed = self._with_less(message)
        return changed if changed != self else None

    def _with_less(self, message: str) -> "Dialect":
        if found := _MOST_OUTPUT.search(message):
            return replace(self, most_output=int(next(filter(None, found.groups()))))
        if _SHORT_IDS.search(message):
            return replace(self, id_chars=SHORT_ID)
        if _UNKNOWN.search(message):
            # The field that is refused is named first, the one to use instead after it.
            if (named := _LIMIT.search(message)) and named[0] in self.limits[:1]:
                return replace(self, limits=self.limits[1:])
            if "stream_options" in message:
                return replace(self, usage=False)
            if _USER.search(message):
                return replace(self, user=False)
        if _NO_FILES.search(message):
            return replace(self, files=False)
        return replace(self, images=False) if _NO_IMAGES.search(message) else self
