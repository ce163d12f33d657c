"""What one clause is about: its verb, the files it names, and what earlier clauses left to refer to."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from app.providers.offline.clauses import Clause, find_verb
from app.providers.offline.language import Language
from app.providers.offline.lexer import Token
from app.providers.offline.paths import AREAS, WORKSPACE, Target, path_like, target, targets_in
from app.providers.offline.steps import CHANGING, Step
from app.providers.offline.verbs import Action, Verb, verb_at
from app.providers.offline.vocabulary import BACK, EVERY, FILES, FOLDERS, INSIDE, INTO, POLITE, STOPS, any_in

# A verb that only asks to be shown something gives way to the one it introduces: `show me how many`, `write a summary`.
_INTRODUCING = frozenset({Action.SHOW, Action.READ, Action.SEARCH, Action.WRITE})
_INTRODUCED = frozenset({Action.LIST, Action.COUNT, Action.SUMMARIZE})
_LOOK_AHEAD = 4


@dataclass(slots=True)
class Context:
    """What later clauses refer back to. `last`: the file named last, perhaps in an earlier turn."""

    text: str
    language: Language
    last: str | None
    files: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    orphan: str | None = None

    def remember(self, path: str) -> None:
        self.last = path
        if path not in self.files:
            self.files.append(path)

    @property
    def outcome(self) -> int | None:
        """The number of the step before, when it found something that can be written."""
        return len(self.steps) - 1 if self.steps and self.steps[-1].kind not in CHANGING else None


@dataclass(frozen=True, slots=True)
class Scene:
    """`literals` are those that name no file. `into`: where the outcome of a reading verb is to be written."""

    clause: Clause
    verb: Verb
    targets: tuple[Target, ...]
    literals: tuple[Token, ...]
    into: Target | None = None

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.clause.tokens

    @property
    def rest(self) -> tuple[Token, ...]:
        return self.tokens[self.verb.end :]

    @property
    def every(self) -> bool:
        return any_in(self.tokens, EVERY)

    @property
    def files(self) -> tuple[Target, ...]:
        return tuple(each for each in self.targets if not each.folder)

    @property
    def folder(self) -> str:
        return next((each.path for each in self.targets if each.folder), WORKSPACE)

    def means_folder(self) -> bool:
        """Names a folder, or speaks of files in general."""
        if self.files or any_in(self.rest, BACK):
            return False
        return bool(self.targets) or any_in(self.rest, FILES) or any_in(self.rest, FOLDERS)


def scene_of(clause: Clause, language: Language) -> Scene | None:
    verb = find_verb(clause.tokens, language)
    if verb is None:
        return None
    verb, introduced = _introduced(clause.tokens, verb, language)
    literals = [(at, token) for at, token in enumerate(clause.tokens) if token.literal]
    targets = _joined(targets_in(clause.tokens))
    if not targets:
        targets, literals = _quoted_targets(verb.action, literals)
    found = Scene(clause, verb, tuple(targets), tuple(token for _, token in literals))
    return _with_outlet(found) if introduced or verb.action in _INTRODUCED | {Action.SEARCH} else found


def _introduced(tokens: Sequence[Token], verb: Verb, language: Language) -> tuple[Verb, bool]:
    if verb.action not in _INTRODUCING:
        return verb, False
    for at in range(verb.end, min(verb.end + _LOOK_AHEAD, len(tokens))):
        inner = verb_at(tokens, at, language)
        if inner and inner.action in _INTRODUCED:
            return inner, True
        if tokens[at] not in STOPS and tokens[at] not in POLITE:
            break
    return verb, False


def _joined(targets: list[Target]) -> list[Target]:
    """`a.txt in the docs folder` is one file: docs/a.txt."""
    folders = [each for each in targets if each.folder]
    files = [each for each in targets if not each.folder]
    if len(folders) != 1 or not files:
        return targets
    top = folders[0].path
    bare = f"{WORKSPACE}/"
    return [
        replace(each, path=f"{top}/{each.path.removeprefix(bare)}")
        if each.path.count("/") == 2 and top not in AREAS
        else each
        for each in files
    ]


def _quoted_targets(action: Action, literals: list[tuple[int, Token]]) -> tuple[list[Target], list[tuple[int, Token]]]:
    """Files named in quotes. Where the verb takes text too, only what looks like a path, and enough text must stay."""
    named = [pair for pair in literals if path_like(pair[1].text.strip())]
    spare = {Action.SEARCH: 1, Action.REPLACE: 2, Action.ERASE: 1}.get(action, 0)
    if spare:
        named = named[-1:] if len(literals) > spare else []
    elif action in (Action.READ, Action.SUMMARIZE, Action.LIST) and not named:
        named = [pair for pair in literals if "\n" not in pair[1].text]
    targets = [target(token.text.strip(), at) for at, token in named]
    return targets, [pair for pair in literals if pair not in named]


def _with_outlet(scene: Scene) -> Scene:
    """Takes the file after `to` or `vào` away from those to be read."""
    last = scene.targets[-1] if scene.targets else None
    if last is None or last.folder:
        return scene
    at = last.at - 1
    while at > 0 and (scene.tokens[at] in FILES or scene.tokens[at].lower in ("the", "a", "new")):
        at -= 1
    if at < scene.verb.end or scene.tokens[at] not in INTO or scene.tokens[at] in INSIDE:
        return scene
    return replace(scene, targets=scene.targets[:-1], into=last)
