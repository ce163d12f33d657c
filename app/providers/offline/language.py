"""Which of the two languages a request is written in. Vietnamese is told with and without its diacritics."""

from collections.abc import Sequence
from enum import StrEnum

from app.providers.offline.lexer import Token, TokenKind


class Language(StrEnum):
    ENGLISH = "en"
    VIETNAMESE = "vi"


# Letters that no other common Latin alphabet of the neighbourhood (French, German, Spanish) has.
_OWN_LETTERS = set("ăđơưạảãấầẩẫậắằẳẵặẹẻẽếềểễệỉĩịọỏốồổỗộớờởỡợụủũứừửữựỳỵỷỹ")

_ENGLISH = frozenset(
    """
    the a an of in to and with please is are what how it then me you my i read write list show find search
    count summarize summarise add append replace change create make many lines words there this that folder
    all for from into back give tell can could hi hello thanks help who do does did
    """.split()
)
_VIETNAMESE = frozenset(
    """
    liet ke doc tep tap tin thu muc trong va voi roi sau viet ghi tao them vao dong tim kiem dem bao nhieu tom
    tat thay bang cho toi hay giup noi dung cua nhung cac co gi xem mo sua doi thanh chao xin ban la nay lai
    chu tu cuoi dau minh day do duoc khong luu nao tat ca hien thi ve ten mot ba bon nam hoi cam on lam viec
    xoa chi
    """.split()
)


def language_of(tokens: Sequence[Token]) -> Language:
    """Literals, and all that follows a colon, are content and say nothing about the language of the request."""
    score = 0
    for token in tokens:
        if token.text == ":" and token.kind is TokenKind.MARK:
            break
        if token.kind is TokenKind.WORD and not set("./") & set(token.text):
            score += _weight(token)
    return Language.VIETNAMESE if score > 0 else Language.ENGLISH


def _weight(token: Token) -> int:
    if _OWN_LETTERS & set(token.lower):
        return 2
    return int(token.folded in _VIETNAMESE or token.lower != token.folded) - int(token.lower in _ENGLISH)
