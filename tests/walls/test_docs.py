"""The documents say what the product does: endpoints, events, codes, defaults; and none of them stands alone."""

import ast
import inspect
import re
from contextlib import asynccontextmanager

import pytest

from app import errors
from app.api.app import create_api
from app.config import FOREIGN, PREFIX, Settings
from app.conversation.events import EventType, PreviewType
from tests.walls.sources import APP, ROOT, calls, parsed, python_files, repository_files, shown

DOCS = ROOT / "docs"
HTTP_API = (DOCS / "http-api.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
FAILURES = {"RunFailed", "ProviderFailure", ".__init__"}
# A start-up error is printed by the command; a lost lease ends a task in silence, for the new owner goes on; what a
# tool server failed at is the result of a call.
NEVER_SENT = {"startup_error", "lease_lost", "tool_server_failed"}
BY_THE_ROUTER = {"method_not_allowed"}


@asynccontextmanager
async def no_lifespan(app):
    yield


@pytest.fixture(scope="module")
def endpoints():
    """`GET /v1/models` and so on, as the OpenAPI document has them."""
    paths = create_api(no_lifespan, (), 1024).openapi()["paths"]
    return {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}


def section(title):
    """The text below a heading of http-api.md, up to the next one of its level."""
    return HTTP_API.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_cells(text):
    return set(re.findall(r"^\| `([a-z_.]+)` \|", text, flags=re.MULTILINE))


def test_every_endpoint_is_documented_and_every_documented_one_exists(endpoints):
    headings = re.findall(r"^### `([A-Z]+ \S+)`$", HTTP_API, flags=re.MULTILINE)
    assert sorted(headings) == sorted(endpoints)


def test_every_event_is_documented_and_every_documented_one_exists():
    text = section("Events")
    known = {str(kind) for kind in (*EventType, *PreviewType)}
    assert first_cells(text) - known == set()
    assert {name for name in known if f"`{name}`" not in text} == set()


def test_every_problem_code_is_documented_and_every_documented_one_exists():
    classes = [
        value for value in vars(errors).values() if inspect.isclass(value) and value.__module__ == errors.__name__
    ]
    sent = {value.code for value in classes} - NEVER_SENT | BY_THE_ROUTER
    problems, _, failures = section("Errors").partition("A failed run has")
    assert first_cells(problems) == sent
    assert first_cells(failures) == failure_codes() | {"internal"}


def failure_codes():
    """What the code calls a failed run, wherever it makes one; classes name theirs where they call their base."""
    made = [
        call.args[0]
        for path in python_files(APP)
        for call, name in calls(parsed(path))
        if name in FAILURES and call.args
    ]
    named = (arg.value for arg in made if isinstance(arg, ast.Constant) and isinstance(arg.value, str))
    return {code for code in named if re.fullmatch("[a-z_]+", code)}


@pytest.mark.parametrize("field", Settings.model_fields)
def test_each_setting_is_documented_with_its_default(field):
    variable = FOREIGN.get(field, PREFIX + field.upper())
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    cells = re.search(rf"^\| `{variable}` \| ([^|]+) \|", text, flags=re.MULTILINE)
    default = Settings.model_fields[field].default
    assert cells is not None
    if isinstance(default, str | int | float) and default != "":
        assert cells[1] == f"`{default}`"


def test_every_path_in_the_readme_is_an_endpoint(endpoints):
    written = set(re.findall(r"\$H(/[\w/$.-]*)", README))
    known = "|".join(re.sub(r"\{\w+_id\}", "[^/]+", path.split()[1]).replace("{path}", ".+") for path in endpoints)
    assert written
    assert {path for path in written if not re.fullmatch(known, path)} == set()


def test_every_make_target_in_the_documents_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    pages = [path for path in repository_files() if path.suffix == ".md"]
    named = {name for page in pages for name in re.findall(r"`make ([a-z]+)`", page.read_text(encoding="utf-8"))}
    assert named - targets == set()


def test_no_document_is_orphaned():
    seen, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in seen:
            seen.add(page)
            links = re.findall(r"\]\((?!\w+:)([^)#\s]+\.md)", page.read_text(encoding="utf-8"))
            ahead += [(page.parent / link).resolve() for link in links]
    pages = {path for path in repository_files() if path.suffix == ".md"}
    assert {shown(path) for path in pages - seen} == set()
