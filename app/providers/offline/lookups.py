"""Clauses that only look: list, read, search, count, summarize."""

from collections.abc import Sequence

from app.providers.offline import regions
from app.providers.offline.lexer import Token
from app.providers.offline.paths import WORKSPACE, Target, path_like
from app.providers.offline.scene import Context, Scene
from app.providers.offline.steps import Kind, Reason, Step
from app.providers.offline.verbs import Action, says
from app.providers.offline.vocabulary import BACK, FILES, FOLDERS, INSIDE, any_in, number, words

_UNITS = {
    "files": words("file files document documents tệp tập"),
    "lines": words("line lines row rows dòng hàng"),
    "words": words("word words từ"),
    "characters": words("character characters letters chars ký kí"),
    "occurrences": words("times occurrences occurrence often lần"),
}
_FIRST, _LAST = words("first top head đầu"), words("last final bottom tail cuối")
_SEEKING = words(
    "does do did appear appears appearing occur occurs there are is is in the word từ chữ chuỗi xuất hiện có"
)
_THAT_HOLD = words("containing contain contains mentioning mention mentions for chứa")
_FAR = 5  # how soon `files containing` or `notes.md for` stands before what is sought
_AFTERTHOUGHT = words("defined mentioned used located found appear appears occur occurs ở đâu nào xuất hiện")


def reading_steps(scene: Scene, context: Context) -> Sequence[Step] | Reason:
    match scene.verb.action:
        case Action.SEARCH:
            return _search(scene, context)
        case Action.COUNT:
            return _count(scene, context)
        case Action.SUMMARIZE:
            return _summarize(scene, context)
        case Action.READ:
            return _read(scene, context)
        case _:
            return _show(scene, context)


def _show(scene: Scene, context: Context) -> Sequence[Step] | Reason:
    """`list` and `show`: a folder's names, or a file's text when a file is named."""
    named = any(path_file(each) for each in scene.files)
    if named or (not scene.files and any_in(scene.rest, BACK) and context.last and not any_in(scene.rest, FILES)):
        return _read(scene, context)
    return [Step(Kind.LIST, each.path, folder=True) for each in scene.targets] or [
        Step(Kind.LIST, WORKSPACE, folder=True)
    ]


def _read(scene: Scene, context: Context) -> Sequence[Step] | Reason:
    offset, limit, tail = _lines_wanted(scene.rest)
    if scene.files:
        return [Step(Kind.READ, each.path, offset=offset, limit=limit, tail=tail) for each in scene.files]
    if _them(scene.rest) and context.files:
        return [Step(Kind.READ, path) for path in context.files]
    if scene.targets or scene.every or (_plural(scene.rest) and not context.files):
        kind = Kind.READ if scene.every or _plural(scene.rest) else Kind.LIST
        return [Step(kind, scene.folder, folder=True)]
    if context.last is None:
        return Reason.WHICH_FILE
    return [Step(Kind.READ, context.last, offset=offset, limit=limit, tail=tail)]


def _them(tokens: Sequence[Token]) -> bool:
    return any(token.lower in ("them", "those", "these", "both", "chúng") for token in tokens)


def _plural(tokens: Sequence[Token]) -> bool:
    return any(token.lower in ("files", "documents") for token in tokens)


def _lines_wanted(tokens: Sequence[Token]) -> tuple[int, int, int]:
    """(offset, limit, tail) of `first 5 lines`, `lines 3 to 7`, `5 dòng cuối`."""
    at = next((at for at, token in enumerate(tokens) if token in _UNITS["lines"]), None)
    if at is None:
        return 1, 0, 0
    near = tokens[max(0, at - 3) : at + 5]
    numbers = [value for token in near for value in _numbers(token) if value > 0]
    if any_in(near, _LAST):
        return 1, 0, numbers[0] if numbers else 1
    if any_in(near, _FIRST):
        return 1, numbers[0] if numbers else 1, 0
    after = [value for token in tokens[at + 1 : at + 5] for value in _numbers(token) if value > 0]
    if len(after) >= 2 and after[0] <= after[1]:
        return after[0], after[1] - after[0] + 1, 0
    return (after[0], 1, 0) if after else (1, 0, 0)


def _numbers(token: Token) -> list[int]:
    """Both ends of `3-7` too."""
    first, _, second = token.text.partition("-")
    if first.isdigit() and second.isdigit():
        return [int(part) for part in (first[:6], second[:6])]
    value = number(token)
    return [] if value is None else [value]


def _search(scene: Scene, context: Context) -> Sequence[Step] | Reason:
    sought = _sought(scene, context)
    if not sought:
        return Reason.WHICH_TEXT
    places = [each for each in scene.targets if each.path != _only_path(sought)]
    if not scene.literals and path_like(sought) and not places:
        return [Step(Kind.LOCATE, WORKSPACE, folder=True, text=sought)]
    any_case = not scene.literals
    if not places and any_in(scene.rest, BACK) and context.last:
        return [Step(Kind.SEARCH, context.last, text=sought, any_case=any_case)]
    places = places or [Target(WORKSPACE, True, 0)]
    return [Step(Kind.SEARCH, each.path, each.folder, sought, any_case) for each in places]


def _only_path(sought: str) -> str:
    return f"{WORKSPACE}/{sought}" if path_like(sought) and not sought.startswith("/") else sought


def _sought(scene: Scene, context: Context) -> str:
    if scene.literals:
        return scene.literals[0].text.strip("\n")
    rest = scene.rest
    start = max((at + 1 for at, token in enumerate(rest[:_FAR]) if token in _THAT_HOLD), default=0)
    found = regions.bare(rest[start : start + _place(rest[start:])])
    if not found:
        after = max((each.at + 1 - scene.verb.end for each in scene.targets), default=len(rest))
        found = regions.bare(rest[max(0, after) :])
    if len(found) > 1:
        found = [token for token in found if token not in FILES] if path_like(found[-1].text) else list(found)
    while len(found) > 1 and found[-1] in _AFTERTHOUGHT:
        found = found[:-1]
    return regions.written(context.text, found)


def _place(tokens: Sequence[Token]) -> int:
    """Where `in <file or folder>` begins."""
    for at, token in enumerate(tokens):
        if token in INSIDE and _names_place(tokens[at + 1 : at + 5]):
            return at
    return len(tokens)


def _names_place(tokens: Sequence[Token]) -> bool:
    objects = (FILES, FOLDERS, BACK)
    return any(any_in(tokens, some) for some in objects) or any(
        path_like(token.text) for token in tokens if not token.literal
    )


def _count(scene: Scene, context: Context) -> Sequence[Step] | Reason:
    near = scene.tokens[scene.verb.start :]
    units = tuple(unit for unit, some in _UNITS.items() if any_in(near, some) and not (unit == "files" and scene.files))
    if "occurrences" in units or (scene.literals and not set(units) & {"lines", "words", "characters"}):
        return _occurrences(scene, context)
    if len(units) > 1 and "files" in units:
        units = tuple(unit for unit in units if unit != "files")
    places = list(scene.files) or [each for each in scene.targets if each.folder]
    if not places and units != ("files",) and context.last and not scene.means_folder():
        return [Step(Kind.COUNT, context.last, units=units or ("lines", "words"))]
    if not places:
        places = [Target(WORKSPACE, True, 0)]
    default = ("files",) if places[0].folder else ("lines", "words")
    return [Step(Kind.COUNT, each.path, each.folder, units=units or default) for each in places]


def _occurrences(scene: Scene, context: Context) -> Sequence[Step] | Reason:
    rest = [
        token
        for token in scene.rest[: _place(scene.rest)]
        if token not in _SEEKING and token not in _UNITS["occurrences"]
    ]
    sought = scene.literals[0].text if scene.literals else regions.written(context.text, regions.bare(rest))
    path = scene.files[0].path if scene.files else context.last
    if not sought.strip():
        return Reason.WHICH_TEXT
    if path is None:
        return Reason.WHICH_FILE
    return [Step(Kind.COUNT, path, text=sought, units=("occurrences",))]


def _summarize(scene: Scene, context: Context) -> Sequence[Step] | Reason:
    if any(token.lower in ("conversation", "chat", "session") or says(token, "thoại") for token in scene.rest):
        return Reason.CANNOT
    if scene.targets:
        return [Step(Kind.SUMMARIZE, each.path, each.folder or not path_file(each)) for each in scene.targets]
    if context.last and not scene.means_folder():
        paths = context.files if _them(scene.rest) and context.files else [context.last]
        return [Step(Kind.SUMMARIZE, path) for path in paths]
    return [Step(Kind.SUMMARIZE, WORKSPACE, folder=True)]


def path_file(target: Target) -> bool:
    """A name with an extension, or one of the well-known names, is a file."""
    name = target.path.rpartition("/")[2]
    return "." in name or path_like(name)
