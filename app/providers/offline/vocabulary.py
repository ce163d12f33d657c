"""Small words of both languages, apart from the actions: what is polite, what joins, what points back."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.providers.offline.lexer import Token, TokenKind, fold

_POLITE = """
    please can could would will you we i want need to like me us let's lets let now also first next then
    finally and only so ok okay hi hello hey dear just kindly help go ahead tell give again i'd i'll want
    should must after that afterwards second third lastly with for yes well thanks thank - * • – hãy xin làm
    ơn giúp tôi mình bạn em anh cho vui lòng có thể nhờ được và rồi sau đó tiếp theo cuối cùng trước tiên đầu
    tiên thì hộ giùm dùm muốn cần bây giờ chào cảm ai là nữa chỉ với xong đi ạ nhé
"""
_NEGATIONS = "don't dont not never without cannot can't won't đừng không chưa"
_CONNECTORS = "and then next finally afterwards & plus và rồi sau xong tiếp cuối"
_STOPS = """
    the a an this that these those of in to into and with is are it its my your our all any every each for
    from on at by as be which what how containing contains contain called named where who when or if please
    back there here trong vào với của và cho là có này đó kia những các một mọi tất cả ở tại từ ra lên nào gì
    hiện để bằng thành chứa tên
"""
_BACK = "it back nó lại"
_FILES = "file files document documents tệp tập tin"
_FOLDERS = "folder folders directory directories dir thư mục workspace"
_EVERY = "all every each everything tất cả mọi từng toàn bộ"
_INTO = "to into as vào ra sang thành"
_INSIDE = "in inside within under across from of trong ở tại của"


@dataclass(frozen=True, slots=True)
class Words:
    """To ask `token in words`. A word written without diacritics stands for its forms with them, not the reverse."""

    plain: frozenset[str]
    folded: frozenset[str]

    def __contains__(self, token: Token) -> bool:
        if token.kind is not TokenKind.WORD:
            return False
        return token.lower in self.plain or (token.lower == token.folded and token.folded in self.folded)


def words(line: str) -> Words:
    plain = frozenset(line.split())
    return Words(plain, frozenset(map(fold, plain)))


POLITE, NEGATIONS, CONNECTORS, STOPS = words(_POLITE), words(_NEGATIONS), words(_CONNECTORS), words(_STOPS)
BACK, FILES, FOLDERS, EVERY = words(_BACK), words(_FILES), words(_FOLDERS), words(_EVERY)
INTO, INSIDE = words(_INTO), words(_INSIDE)

_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve".split(),
    "không một hai ba bốn năm sáu bảy tám chín mười".split(),
)
_VALUES = {form: value for names in _NUMBERS for value, name in enumerate(names) for form in (name, fold(name))}


def any_in(tokens: Sequence[Token], some: Words) -> bool:
    return any(token in some for token in tokens)


def number(token: Token) -> int | None:
    """At most six digits, so that no request asks for more lines than anybody can mean."""
    if token.text.isascii() and token.text.isdigit() and len(token.text) <= 6:
        return int(token.text)
    return _VALUES.get(token.lower)
