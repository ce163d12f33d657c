"""The libraries: declared, locked, few, permissive, each with a reason in the decision record."""

import re
import sys
import tomllib
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.walls.sources import APP, ROOT, imported, python_files, shown

MOST_AT_RUN_TIME = 60
PERMISSIVE = re.compile(r"\b(MIT|BSD|Apache|MPL|PSF|Python Software Foundation|Mozilla Public|ISC)\b")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RUN_TIME = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRAS = PROJECT["optional-dependencies"]
DEVELOPMENT = [Requirement(line) for line in EXTRAS["dev"]]
OPTIONAL = [Requirement(line) for name, lines in EXTRAS.items() if name != "dev" for line in lines]


def closure(requirements):
    """Names of all packages these need here, themselves included."""
    seen, waiting = set(), list(requirements)
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), *sorted(requirement.extras))
        if key not in seen:
            seen.add(key)
            waiting += needs(requirement)
    return {name for name, *_ in seen}


def needs(requirement):
    extras = {"", *requirement.extras}
    return [
        each
        for each in map(Requirement, metadata.requires(requirement.name) or [])
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)
    ]


def locked():
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition(" ; ")[0].partition("==") for line in lines if not line.startswith("#"))
    return {canonicalize_name(name): version for name, _, version in pairs}


def licences(name):
    about = metadata.metadata(name)
    classifiers = [line for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    return " ".join([about.get("License-Expression", ""), about.get("License", "") or "", *classifiers])


def test_the_lock_pins_the_whole_closure_and_nothing_else():
    assert set(locked()) == closure(RUN_TIME + DEVELOPMENT)


def test_the_environment_is_the_locked_one():
    assert {name: metadata.version(name) for name in locked()} == locked()


def test_every_lock_fits_its_declared_range():
    pins = locked()
    assert [each for each in RUN_TIME + DEVELOPMENT if pins[canonicalize_name(each.name)] not in each.specifier] == []


def test_the_server_needs_few_packages():
    assert len(closure(RUN_TIME)) < MOST_AT_RUN_TIME


def test_every_package_of_the_server_has_a_permissive_licence():
    assert {name: found for name in closure(RUN_TIME) if not PERMISSIVE.search(found := licences(name))} == {}


def test_each_dependency_has_its_reason_on_record():
    record = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text(encoding="utf-8")
    assert [each.name for each in RUN_TIME + DEVELOPMENT if f"`{each.name}`" not in record] == []


def test_the_server_imports_only_what_it_declares():
    declared = {canonicalize_name(each.name) for each in RUN_TIME + OPTIONAL}
    owners = metadata.packages_distributions()
    foreign = [
        (shown(path), name)
        for path in python_files(APP)
        for name in {module.partition(".")[0] for module, _ in imported(path)}
        if name != "app" and name not in sys.stdlib_module_names
        if not declared & {canonicalize_name(owner) for owner in owners.get(name, [])}
    ]
    assert foreign == []
