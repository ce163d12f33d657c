"""The files of the compose profile `observability`, as tests read them."""

import json
import re
from typing import Any

import yaml

from tests.walls.sources import ROOT

FOLDER = ROOT / "deploy" / "observability"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "grafana/dashboards/hango.json").read_text(encoding="utf-8"))
QUERIES: list[str] = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def config(path: str) -> dict[str, Any]:
    """One YAML file below the folder."""
    return dict(yaml.safe_load((FOLDER / path).read_text(encoding="utf-8")))


def metrics_of(query: str) -> set[str]:
    """Names of series in a query: words that are no function, no label and no keyword."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)", "", query)
    return set(re.findall(r"\b[a-z_]+(?:_[a-z_]+)+\b(?!\s*\()", bare))


def labels_of(query: str) -> set[str]:
    grouped = re.findall(r"\bby \(([^)]*)\)", query)
    matched = re.findall(r"(\w+)=", " ".join(re.findall(r"\{([^}]*)\}", query)))
    return {label.strip() for group in grouped for label in group.split(",")} | set(matched)
