"""The phrases that name an action, in both languages, and where one stands in a clause."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.providers.offline.language import Language
from app.providers.offline.lexer import Token, TokenKind, fold


class Action(StrEnum):
    LIST = "list"
    SHOW = "show"
    READ = "read"
    SEARCH = "search"
    WRITE = "write"
    APPEND = "append"
    REPLACE = "replace"
    ERASE = "erase"
    COUNT = "count"
    SUMMARIZE = "summarize"
    CANNOT = "cannot"


WRITING = frozenset({Action.WRITE, Action.APPEND, Action.REPLACE, Action.ERASE})

# Phrases are separated by commas. SHOW is read or list, whichever the object asks for.
_ENGLISH: dict[Action, str] = {
    Action.LIST: "list, ls, dir, enumerate, what files, which files, list of, listing of, any files",
    Action.SHOW: """
        show, display, what is in, what's in, whats in, what is inside, what's inside, see, view, look at,
        look in
    """,
    Action.READ: """
        read, reread, re-read, open, print, cat, contents of, content of, the contents, the content, what
        does
    """,
    Action.SEARCH: """
        search, search for, find, grep, grep for, look for, locate, where is, where are, which files
        contain, which files mention, which file contains, which file mentions, contain, contains, mention,
        mentions, files containing, lines containing, what files contain
    """,
    Action.WRITE: """
        write, rewrite, create, make, save, put, store, overwrite, generate, draft, compose, jot down, new
        file
    """,
    Action.APPEND: "append, add, insert",
    Action.REPLACE: "replace, change, edit, substitute, swap, update, modify, correct, rename",
    Action.ERASE: "remove, delete, erase",
    Action.COUNT: "count, how many, number of, wc, line count, word count, how long is, how long",
    Action.SUMMARIZE: """
        summarize, summarise, summary, sum up, overview of, give an overview, tl;dr, tldr, outline,
        describe, digest, summarizing
    """,
    Action.CANNOT: """
        move, copy, run, execute, install, translate, download, upload, send, email, compile, deploy,
        browse, fetch, push, commit, calculate, compute, explain, why, fix, debug, implement, refactor, make
        sure
    """,
}
_VIETNAMESE: dict[Action, str] = {
    Action.LIST: """
        liệt kê, danh sách, kể tên, những tệp nào, những file nào, các tệp nào, tệp nào, file nào, tập tin
        nào, những tập tin nào
    """,
    Action.SHOW: "xem, cho xem, hiển thị, hiện ra, có gì, cho thấy, gồm những gì, chứa gì, in ra",
    Action.READ: "đọc, đọc lại, mở, nội dung của, nội dung tệp, nội dung file, xem lại",
    Action.SEARCH: """
        tìm, tìm kiếm, tra cứu, dò tìm, tra, tệp nào chứa, file nào chứa, những tệp nào chứa, những file nào
        chứa, tệp nào có chứa, file nào có chứa, có chứa, nhắc đến, nhắc tới
    """,
    Action.WRITE: "viết, ghi, tạo, lưu, soạn, ghi đè, viết ra, ghi ra, tạo ra, ghi lại, viết lại, lưu lại",
    Action.APPEND: "thêm, ghi thêm, viết thêm, bổ sung, nối thêm, chèn, thêm vào, bổ sung thêm",
    Action.REPLACE: "thay, thay thế, đổi, sửa, chỉnh sửa, cập nhật, thay đổi, sửa đổi, đổi tên, sửa lại",
    Action.ERASE: "xóa, xoá, bỏ, gỡ",
    Action.COUNT: """
        đếm, bao nhiêu, có bao nhiêu, mấy dòng, có mấy, số dòng, số từ, số tệp, số lượng, đếm số, mấy tệp,
        mấy từ
    """,
    Action.SUMMARIZE: "tóm tắt, tóm lược, tổng kết, tổng quan, khái quát, bản tóm tắt",
    Action.CANNOT: """
        di chuyển, sao chép, chạy, dịch, tải, gửi, cài, cài đặt, giải thích, vì sao, tại sao, tính toán,
        biên dịch
    """,
}


@dataclass(frozen=True, slots=True)
class Phrase:
    action: Action
    words: tuple[str, ...]
    folded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verb:
    """An action named by the tokens `start..end` (end excluded) of a clause."""

    action: Action
    start: int
    end: int


def _phrases(table: dict[Action, str]) -> list[Phrase]:
    pairs = ((action, tuple(each.split())) for action, line in table.items() for each in line.split(","))
    return [Phrase(action, words, tuple(map(fold, words))) for action, words in pairs]


def _by_first(phrases: Iterable[Phrase]) -> dict[str, list[Phrase]]:
    """Longest first, so that `which files contain` wins over `which files`."""
    index: dict[str, list[Phrase]] = {}
    for phrase in sorted(phrases, key=lambda phrase: -len(phrase.words)):
        index.setdefault(phrase.folded[0], []).append(phrase)
    return index


_IN_ENGLISH = _by_first(_phrases(_ENGLISH))
_IN_VIETNAMESE = _by_first(_phrases(_VIETNAMESE))


def says(token: Token, phrase_word: str) -> bool:
    """A word written with diacritics must match them (`thấy` is not `thay`); one without matches either way."""
    return token.lower == phrase_word or token.lower == token.folded == fold(phrase_word)


def verb_at(tokens: Sequence[Token], at: int, language: Language) -> Verb | None:
    if tokens[at].kind is not TokenKind.WORD:
        return None
    candidates = list(_IN_ENGLISH.get(tokens[at].lower, ()))
    if language is Language.VIETNAMESE:
        candidates += _IN_VIETNAMESE.get(tokens[at].folded, ())
    found = [phrase for phrase in candidates if _matches(phrase, tokens[at : at + len(phrase.words)])]
    longest = max(found, key=lambda phrase: len(phrase.words), default=None)
    return Verb(longest.action, at, at + len(longest.words)) if longest else None


def _matches(phrase: Phrase, tokens: Sequence[Token]) -> bool:
    if len(tokens) < len(phrase.words) or any(token.kind is not TokenKind.WORD for token in tokens):
        return False
    return all(map(says, tokens, phrase.words))
