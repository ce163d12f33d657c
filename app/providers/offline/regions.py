"""Stretches of a clause that stand for text: what to write, to find or to replace when no quotes say so."""

from collections.abc import Sequence

from app.providers.offline.lexer import Token
from app.providers.offline.paths import Target
from app.providers.offline.verbs import says
from app.providers.offline.vocabulary import FILES, INSIDE, INTO, Words, number, words

_ARTICLES = words("a an the some my our for any all every each of that where một bài các những mọi tất cả cái có")
_NOUNS = words(
    """
    line lines text texts word words phrase string term content contents occurrence occurrences mention
    mentions containing saying says dòng chữ đoạn văn bản nội dung là từ chuỗi cụm chứa
    """
)
_DESCRIBED = words(
    """
    note notes poem story code function script essay summary report list letter something anything bullet
    bullets items short sensible few random new file ghi chú thơ truyện báo cáo mã hàm tệp
    """
)
_OUTCOME = words(
    """
    it that this them result results summary list answer output count counts outcome the of a nó đó này kết
    quả bản tóm tắt danh sách câu trả lời
    """
)
_MARKERS = [
    each.split()
    for each in """
    containing, saying, that says, which says, that contains, with the text, with text, with content, with contents,
    with the content, with the contents, with the line, with the word, with the words, with the message,
    với nội dung là, với nội dung, có nội dung là, có nội dung, nội dung là, với dòng chữ, với dòng
    """.split(",")
]
_AROUND = words("end bottom file cuối tệp tin")


def written(text: str, tokens: Sequence[Token]) -> str:
    """The tokens as they stand in the request; a single literal gives its inner text."""
    if not tokens:
        return ""
    return tokens[0].text if len(tokens) == 1 and tokens[0].literal else text[tokens[0].start : tokens[-1].end]


def before_target(tokens: Sequence[Token], start: int, target: Target | None) -> int:
    """Where the words that lead to the target (`to the end of the file`) begin; the end when it is before `start`."""
    if target is None or target.at < start:
        return len(tokens)
    at = target.at
    while at > start and _leads(tokens[at - 1]):
        at -= 1
    return at


def _leads(token: Token) -> bool:
    return any(token in some for some in (INTO, INSIDE, FILES, _AROUND)) or token.lower in ("the", "at", "on")


def after_marker(tokens: Sequence[Token]) -> int | None:
    """The position after the words that announce content, such as `containing` or `với nội dung`."""
    for at in range(len(tokens)):
        for marker in _MARKERS:
            part = tokens[at : at + len(marker)]
            if len(part) == len(marker) and all(map(says, part, marker)):
                return at + len(marker)
    return None


def until_line_end(tokens: Sequence[Token], start: int) -> int:
    return next((at for at in range(start, len(tokens)) if tokens[at].text == "\n"), len(tokens))


def bare(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without the articles and nouns that introduce a text: `the word apple` is about `apple`."""
    at = 0
    while at < len(tokens) and (tokens[at] in _ARTICLES or tokens[at] in _NOUNS):
        at += 1
    return tokens[at:]


def given(tokens: Sequence[Token]) -> Sequence[Token]:
    """The text itself; nothing when the words only describe what the text should be, like `a poem about rain`."""
    rest = bare(tokens)
    introduced = tokens[: len(tokens) - len(rest)]
    if not rest or rest[0] in _DESCRIBED or line_count(tokens) is not None:
        return ()
    return rest if not introduced or any(token in _NOUNS for token in introduced) else ()


def means_outcome(tokens: Sequence[Token]) -> bool:
    """`it`, `the result`, `kết quả`: what the step before found."""
    return bool(tokens) and all(token in _OUTCOME for token in tokens)


def line_count(tokens: Sequence[Token]) -> int | None:
    """The number in `three short lines` or `ba dòng`."""
    for at, token in enumerate(tokens):
        if token.lower in ("line", "lines", "bullets", "items") or says(token, "dòng"):
            values = [number(each) for each in tokens[max(0, at - 2) : at]]
            found = next((value for value in reversed(values) if value is not None), None)
            if found is not None:
                return found
    return None


def first_of(tokens: Sequence[Token], start: int, some: Words) -> int | None:
    return next((at for at in range(start, len(tokens)) if tokens[at] in some), None)
