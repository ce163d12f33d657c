"""A request cut into clauses: one action each, in the order they were asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.providers.offline.language import Language
from app.providers.offline.lexer import Token, TokenKind
from app.providers.offline.paths import path_like
from app.providers.offline.verbs import WRITING, Action, Verb, verb_at
from app.providers.offline.vocabulary import BACK, CONNECTORS, FILES, FOLDERS, INSIDE, NEGATIONS, POLITE, any_in

_STRONG = ".;!?"
_WEAK = ",()\n"
_TAKES_TEXT = (Action.WRITE, Action.APPEND)
# Bounds on how far one looks ahead, so that a long text costs time in proportion to its length.
_LONGEST_LEAD = 12
_LONGEST_PHRASE = 40


@dataclass(frozen=True, slots=True)
class Clause:
    """`content` is the text after a colon, exactly as written; None without one."""

    tokens: tuple[Token, ...]
    content: str | None = None

    @property
    def span(self) -> tuple[int, int]:
        return self.tokens[0].start, self.tokens[-1].end


def find_verb(tokens: Sequence[Token], language: Language) -> Verb | None:
    """The first action named. One that changes files counts only at the head of the clause, after polite words."""
    for at in range(len(tokens)):
        verb = verb_at(tokens, at, language)
        if verb and (verb.action not in WRITING or all(map(_may_lead, tokens[:at]))):
            return verb
        if verb and verb.action in WRITING:
            return None
    return None


def _may_lead(token: Token) -> bool:
    return (
        token.kind is not TokenKind.WORD
        or token in POLITE
        or token in INSIDE
        or token in NEGATIONS
        or path_like(token.text)
    )


class Splitter:
    def __init__(self, text: str, tokens: Sequence[Token], language: Language) -> None:
        self._text, self._tokens, self._language = text, tokens, language
        self._clauses: list[Clause] = []
        self._open: list[Token] = []

    def split(self) -> list[Clause]:
        at = 0
        while at < len(self._tokens):
            at = self._step(at)
        self._close()
        return self._clauses

    def _step(self, at: int) -> int:
        """Takes the token at `at` and returns the position of the next one to look at."""
        token = self._tokens[at]
        if token.kind is TokenKind.MARK and token.text == ":":
            return self._colon(at)
        if (token.kind is TokenKind.MARK and token.text in _STRONG) or self._separates(at):
            self._close()
        elif token.kind is not TokenKind.MARK or token.text == "\n":
            self._open.append(token)
        return at + 1

    def _separates(self, at: int) -> bool:
        token = self._tokens[at]
        if token.kind is TokenKind.MARK and token.text == "\n" and self._is_blank_line(at):
            return not self._is_literal(at + 2)
        weak = token.kind is TokenKind.MARK and token.text in _WEAK
        return (weak or token in CONNECTORS) and self._command_at(at + 1) is not None

    def _is_blank_line(self, at: int) -> bool:
        return at + 1 < len(self._tokens) and self._tokens[at + 1].text == "\n"

    def _is_literal(self, at: int) -> bool:
        return at < len(self._tokens) and self._tokens[at].literal

    def _command_at(self, at: int) -> Verb | None:
        """The verb that stands here, after joining and polite words and list marks."""
        for each in range(at, min(at + _LONGEST_LEAD, len(self._tokens))):
            verb = verb_at(self._tokens, each, self._language)
            if verb or not self._skippable(self._tokens[each]):
                return verb
        return None

    def _skippable(self, token: Token) -> bool:
        if token.kind is TokenKind.MARK:
            return token.text in ",\n."
        return token in POLITE or token in CONNECTORS or token.text.isdigit()

    def _colon(self, at: int) -> int:
        verb = find_verb(self._open, self._language)
        if verb is None:
            self._close()
            return at + 1
        if verb.action not in _TAKES_TEXT:
            return at + 1
        following = at + 1
        while following < len(self._tokens) and self._tokens[following].text == "\n":
            following += 1
        if self._is_literal(following):
            return following
        start = self._tokens[at].end
        end, next_command = self._content_end(at)
        content = self._text[start:end].strip("\r\n") if following > at + 1 else self._text[start:end].strip()
        self._close(content if end == len(self._text) else content.rstrip(" \t\n,;"))
        return next_command

    def _content_end(self, colon: int) -> tuple[int, int]:
        """Where the text after a colon ends, and the token to go on with: a command that names its object ends it."""
        block = colon + 1 < len(self._tokens) and self._tokens[colon + 1].text == "\n"
        for at in range(colon + 1, len(self._tokens)):
            if self._may_end_content(at, block) and self._commands(at + 1):
                end = self._tokens[at]
                return end.end if end.text == "." else end.start, at + 1
        return len(self._text), len(self._tokens)

    def _may_end_content(self, at: int, block: bool) -> bool:
        token = self._tokens[at]
        if token.kind is TokenKind.MARK and token.text == "\n":
            joined = at + 1 < len(self._tokens) and self._tokens[at + 1] in CONNECTORS
            return not block or self._is_blank_line(at) or joined
        return not block and (token in CONNECTORS or (token.kind is TokenKind.MARK and token.text in ",.;"))

    def _commands(self, at: int) -> bool:
        if self._command_at(at) is None:
            return False
        phrase: list[Token] = []
        for token in self._tokens[at : at + _LONGEST_PHRASE]:
            if phrase and token.kind is TokenKind.MARK and token.text in ",.;\n":
                break
            phrase.append(token)
        objects = (BACK, FILES, FOLDERS)
        return any(any_in(phrase, words) for words in objects) or any(path_like(token.text) for token in phrase)

    def _close(self, content: str | None = None) -> None:
        tokens = list(self._open)
        while tokens and tokens[-1].text == "\n":
            tokens.pop()
        while tokens and tokens[0].text == "\n":
            tokens.pop(0)
        if tokens:
            self._clauses.append(Clause(tuple(tokens), content))
        self._open = []
