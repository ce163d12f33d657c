"""Clauses that change files: write, append, replace, erase a text."""

from collections.abc import Sequence

from app.providers.offline import regions
from app.providers.offline.invention import invented_lines
from app.providers.offline.lexer import Token
from app.providers.offline.paths import Target, path_like
from app.providers.offline.scene import Context, Scene
from app.providers.offline.steps import Kind, Reason, Step
from app.providers.offline.verbs import Action
from app.providers.offline.vocabulary import BACK, FILES, INTO, any_in, words

_EMPTY = words("empty blank rỗng trống")
_BY = words("with by to into bằng thành sang -> → =>")
_PLACES = words("in inside within everywhere throughout of trong ở")


def changing_steps(scene: Scene, context: Context) -> Sequence[Step] | Reason:
    if scene.verb.action is Action.REPLACE:
        return _replace(scene, context)
    if scene.verb.action is Action.ERASE:
        return _erase(scene, context)
    return _write(scene, context)


def _write(scene: Scene, context: Context) -> Sequence[Step] | Reason:
    kind = Kind.APPEND if scene.verb.action is Action.APPEND else Kind.WRITE
    paths = [each.path for each in _destinations(scene)]
    if not paths:
        if context.last is None or not (kind is Kind.APPEND or any_in(scene.rest, BACK) or any_in(scene.rest, FILES)):
            return _no_file(scene, context)
        paths = [context.last]
    texts = _texts(scene, context)
    if texts is None:
        return _made_up(kind, scene, paths, context)
    if len(texts) == len(paths):
        return [Step(kind, path, text=text) for path, text in zip(paths, texts, strict=True)]
    return [Step(kind, path, text="\n".join(texts)) for path in paths]


def _no_file(scene: Scene, context: Context) -> Reason:
    has_text = scene.literals or scene.clause.content is not None
    return Reason.WHICH_FILE if has_text else Reason.CANNOT


def _destinations(scene: Scene) -> Sequence[Target]:
    """The file after `to` or `vào`, else every file named."""
    return [each for each in scene.files if _is_entered(scene, each)] or scene.files


def _is_entered(scene: Scene, file: Target) -> bool:
    at = regions.before_target(scene.tokens, scene.verb.end, file)
    return any_in(scene.tokens[at : file.at], INTO)


def _texts(scene: Scene, context: Context) -> list[str] | None:
    """The texts the request gives, exactly as it gives them; None when it gives none."""
    if scene.clause.content is not None:
        return [_as_lines(scene.clause.content, regions.line_count(scene.tokens))]
    if scene.literals:
        return [token.text for token in scene.literals]
    if any_in(scene.rest, _EMPTY):
        return [""]
    marked = regions.after_marker(scene.tokens)
    place = next((each for each in _destinations(scene) if each.at >= (marked or scene.verb.end)), None)
    if marked is not None:
        end = min(regions.before_target(scene.tokens, marked, place), regions.until_line_end(scene.tokens, marked))
        return [regions.written(context.text, scene.tokens[marked:end])]
    found = scene.tokens[scene.verb.end : regions.before_target(scene.tokens, scene.verb.end, place)]
    given = () if regions.means_outcome(found) else regions.given(found)
    if given and (place is not None or scene.verb.action is Action.APPEND):
        return [regions.written(context.text, given)]
    if context.orphan is not None:
        text, context.orphan = context.orphan, None
        return [text]
    return None


def _as_lines(content: str, wanted: int | None) -> str:
    """`three lines: a, b, c` gives three lines."""
    if wanted is None or "\n" in content:
        return content
    for mark in ";|,":
        parts = [part.strip() for part in content.split(mark)]
        if len(parts) == wanted > 1:
            return "\n".join(parts)
    return content


def _made_up(kind: Kind, scene: Scene, paths: Sequence[str], context: Context) -> Sequence[Step] | Reason:
    """The outcome of the step before, when the clause means it; else lines of our own."""
    refers = regions.means_outcome(_object(scene)) or (not _object(scene) and _goes_into(scene))
    if refers and context.outcome is not None:
        return [Step(kind, path, source=context.outcome) for path in paths]
    count = regions.line_count(scene.tokens)
    if count is None:
        count = 1 if kind is Kind.APPEND else 3
    lines = [invented_lines(path, count, context.language, kind is Kind.APPEND) for path in paths]
    return [
        Step(kind, path, text="".join(f"{line}\n" for line in each), invented=len(each))
        for path, each in zip(paths, lines, strict=True)
    ]


def _object(scene: Scene) -> Sequence[Token]:
    place = next((each for each in _destinations(scene) if each.at >= scene.verb.end), None)
    return scene.tokens[scene.verb.end : regions.before_target(scene.tokens, scene.verb.end, place)] if place else ()


def _goes_into(scene: Scene) -> bool:
    return any_in(scene.tokens[scene.verb.end : scene.verb.end + 2], INTO)


def _replace(scene: Scene, context: Context) -> Sequence[Step] | Reason:
    sides = _sides(scene, context)
    if sides is None or not sides[0]:
        return Reason.WHICH_TEXT
    old, new = sides
    inner = {old.strip(), new.strip()}
    paths = [each.path for each in scene.files if not inner & {each.path, each.path.rpartition("/")[2]}]
    paths = paths or ([context.last] if context.last else [])
    if not paths:
        return Reason.WHICH_FILE
    return [Step(Kind.REPLACE, path, text=old, new=new) for path in paths]


def _sides(scene: Scene, context: Context) -> tuple[str, str] | None:
    """(old, new): two literals, or the words before and after `with`, `bằng` or `thành`."""
    if len(scene.literals) >= 2:
        first, second = (token.text.strip("\n") for token in scene.literals[:2])
        return first, second
    rest = scene.rest
    middle = regions.first_of(rest, 1, _BY)
    if middle is None:
        return None
    end = _end_of_new(rest, middle + 1)
    old, new = regions.bare(rest[:middle]), regions.bare(rest[middle + 1 : end])
    if len(old) == 1 and old[0] in BACK:
        return _searched_before(context), regions.written(context.text, new)
    return (regions.written(context.text, old), regions.written(context.text, new)) if new else None


def _searched_before(context: Context) -> str:
    return context.steps[-1].text if context.steps and context.steps[-1].kind is Kind.SEARCH else ""


def _end_of_new(rest: Sequence[Token], start: int) -> int:
    """Where `in notes.md` (the last one) begins, or the end."""
    for at in range(len(rest) - 1, start, -1):
        names = any(path_like(token.text) for token in rest[at + 1 : at + 4])
        if rest[at] in _PLACES and (
            names or any_in(rest[at + 1 : at + 4], BACK) or any_in(rest[at + 1 : at + 4], FILES)
        ):
            return at
    return len(rest)


def _erase(scene: Scene, context: Context) -> Sequence[Step] | Reason:
    """Text in quotes is taken out of a file; files and folders themselves cannot be removed."""
    path = scene.files[0].path if scene.files else context.last
    if not scene.literals or path is None:
        return Reason.CANNOT
    return [Step(Kind.REPLACE, path, text=scene.literals[0].text.strip("\n"), new="")]
