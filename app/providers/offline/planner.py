"""The steps a request asks for. Only its text decides, and what file was named last before it."""

from app.providers.offline.changes import changing_steps
from app.providers.offline.clauses import Clause, Splitter
from app.providers.offline.language import Language
from app.providers.offline.lexer import Token, TokenKind
from app.providers.offline.lookups import reading_steps
from app.providers.offline.paths import path_like, targets_in
from app.providers.offline.scene import Context, Scene, scene_of
from app.providers.offline.steps import Kind, Plan, Reason, Remark, Step
from app.providers.offline.verbs import WRITING, Action
from app.providers.offline.vocabulary import NEGATIONS, POLITE, STOPS, any_in

MAX_STEPS = 40  # named in the phrases
# Looking is refused only by a word right before it: `I do not know what is in notes.md` asks to look.
_NEGATION_REACH = 2


def plan(text: str, tokens: list[Token], language: Language, last: str | None) -> Plan:
    context = Context(text, language, last)
    remarks: list[Remark] = []
    for clause in Splitter(text, tokens, language).split():
        if len(context.steps) > MAX_STEPS:
            break
        reason = _take(clause, context)
        if reason and len(remarks) < MAX_STEPS:
            remarks.append(Remark(reason, _quoted(clause, text)))
    if len(context.steps) > MAX_STEPS:
        remarks.append(Remark(Reason.TOO_MANY, ""))
    return Plan(tuple(context.steps[:MAX_STEPS]), tuple(remarks))


def _take(clause: Clause, context: Context) -> Reason | None:
    """Adds the clause's steps to the context; the reason when it has none."""
    scene = scene_of(clause, context.language)
    if scene is None:
        return _take_verbless(clause, context)
    if _is_negated(scene):
        return Reason.FORBIDDEN
    if scene.verb.action is Action.CANNOT:
        return Reason.CANNOT
    steps = changing_steps(scene, context) if scene.verb.action in WRITING else reading_steps(scene, context)
    if isinstance(steps, Reason):
        return steps
    for step in steps:
        _add(step, context)
    _add_outlet(scene, context)
    return None


def _is_negated(scene: Scene) -> bool:
    start = 0 if scene.verb.action in WRITING else max(0, scene.verb.start - _NEGATION_REACH)
    return any_in(scene.tokens[start : scene.verb.start], NEGATIONS)


def _add(step: Step, context: Context) -> None:
    context.steps.append(step)
    if not step.folder:
        context.remember(step.path)


def _add_outlet(scene: Scene, context: Context) -> None:
    if scene.into is not None:
        _add(Step(Kind.WRITE, scene.into.path, source=len(context.steps) - 1), context)


def _take_verbless(clause: Clause, context: Context) -> Reason | None:
    """`In notes.md, ...` names a file for what follows, a literal alone is text for it, small words are nothing."""
    for target in targets_in(clause.tokens):
        if not target.folder:
            context.remember(target.path)
    literals = [token.text for token in clause.tokens if token.literal]
    context.orphan = literals[-1] if literals else context.orphan
    unknown = [token for token in clause.tokens if _matters(token)]
    return Reason.UNKNOWN if unknown else None


def _matters(token: Token) -> bool:
    if token.kind is not TokenKind.WORD or token in POLITE or token in STOPS:
        return False
    return not path_like(token.text) and any(char.isalpha() for char in token.text)


def _quoted(clause: Clause, text: str) -> str:
    start, end = clause.span
    return " ".join(text[start : min(end, start + 200)].split())
