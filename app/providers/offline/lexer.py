"""A request cut into words, marks and literals, in one pass. Literals keep their text exactly as it was written."""

import unicodedata
from dataclasses import dataclass
from enum import StrEnum

FENCE = "```"
QUOTES = {'"': '"', "“": "”", "«": "»", "‘": "’", "`": "`", "'": "'"}
MARKS = ",;:!?()"


class TokenKind(StrEnum):
    WORD = "word"
    MARK = "mark"
    QUOTE = "quote"
    FENCE = "fence"


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is the inner text of a literal; `start` and `end` include its quotes. `lower` is composed (NFC)."""

    kind: TokenKind
    text: str
    start: int
    end: int
    lower: str = ""
    folded: str = ""

    @property
    def literal(self) -> bool:
        return self.kind in (TokenKind.QUOTE, TokenKind.FENCE)


def fold(lower: str) -> str:
    """Without diacritics: `đọc` becomes `doc`."""
    apart = unicodedata.normalize("NFD", lower.replace("đ", "d"))
    return "".join(char for char in apart if not unicodedata.combining(char))


def word(text: str, start: int) -> Token:
    lower = unicodedata.normalize("NFC", text.lower())
    return Token(TokenKind.WORD, text, start, start + len(text), lower, fold(lower))


def lex(text: str) -> list[Token]:
    tokens: list[Token] = []
    unclosed: set[str] = set()
    at = 0
    while at < len(text):
        found = _fence(text, at) or _quote(text, at, unclosed)
        if found:
            tokens.append(found)
            at = found.end
        elif text[at] == "\n" or text[at] in MARKS:
            tokens.append(Token(TokenKind.MARK, text[at], at, at + 1))
            at += 1
        elif text[at].isspace() or text[at] in QUOTES:
            at += 1
        else:
            end = _word_end(text, at)
            tokens += _word_and_dots(text[at:end], at)
            at = end
    return tokens


def _fence(text: str, at: int) -> Token | None:
    if not text.startswith(FENCE, at):
        return None
    close = text.find(FENCE, at + len(FENCE))
    inner = text[at + len(FENCE) : close if close >= 0 else len(text)]
    info, line_feed, body = inner.partition("\n")
    if line_feed and " " not in info.strip():
        inner = body
    return Token(TokenKind.FENCE, inner, at, close + len(FENCE) if close >= 0 else len(text))


def _quote(text: str, at: int, unclosed: set[str]) -> Token | None:
    """`unclosed` remembers quotes that nothing closes any more, so that each is looked for once."""
    close = QUOTES.get(text[at])
    if close is None or close in unclosed or (at and text[at] == close and text[at - 1].isalnum()):
        return None
    end = text.find(close, at + 1)
    while end >= 0 and close in "'’" and text[end + 1 : end + 2].isalnum():
        end = text.find(close, end + 1)
    if end < 0:
        unclosed.add(close)
        return None
    return Token(TokenKind.QUOTE, text[at + 1 : end], at, end + 1)


def _word_end(text: str, at: int) -> int:
    end = at + 1
    while end < len(text) and not text[end].isspace() and not _ends_word(text, end):
        end += 1
    return end


def _ends_word(text: str, at: int) -> bool:
    char, after = text[at], text[at + 1 : at + 2]
    if char in "'’":
        return not after.isalnum()
    if char == ":":
        return not after or after.isspace() or after in QUOTES
    if char == ",":
        return not (text[at - 1].isdigit() and after.isdigit())
    return char in MARKS or char in QUOTES


def _word_and_dots(text: str, start: int) -> list[Token]:
    """`notes.md.` is a word and a full stop; `..` alone stays a word."""
    bare = text.rstrip(".…") if text != ".." else text
    tokens = [word(bare, start)] if bare else []
    if len(bare) < len(text):
        tokens.append(Token(TokenKind.MARK, ".", start + len(bare), start + len(text)))
    return tokens
