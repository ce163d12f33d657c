"""Schemathesis over the server's own OpenAPI document: what it asked, what it was answered, what it complains about."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

# Refusals of what fits the document: rules between fields, or of what only the server knows, that no schema can say.
BEYOND_A_SCHEMA = {
    "thinking.budget_tokens": "stays below max_tokens, and leaves half of the window",
    "max_tokens": "is at most what the model writes, and above the session's thinking budget",
    "context.trigger_frac": "is at least keep_frac",
    "context.keep_frac": "is at most trigger_frac",
    "context.micro_frac": "lies between the two",
    "context.context_window_tokens": "is at most max_input_tokens",
    "mcp_servers": "have names of their own, headers that HTTP allows, and hosts that the operator named",
    "tools": "have names of their own, and schemas that a provider takes",
    "approvals": "names tools of the session, or calls that wait",
    "results": "names calls that wait",
    "model": "leaves room for the session's thinking",
}
OF_OUR_OWN = (
    "must be",
    "must not",
    "must name",
    "needs",
    "the session's",
    "the thinking",
    "0 < keep_frac",
)  # how those rules begin
# An order of messages, and a size in tokens, are beyond it too.
CODES_BEYOND = ("transcript_invalid", "input_too_large")


@dataclass
class Report:
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    troubles: list[Any] = field(default_factory=list)


def fuzz(
    document: dict[str, Any], url: str, key: str | None, opaque: Mapping[str, Sequence[str]], examples: int
) -> Report:
    """Blocks until it is done: about `examples` made-up requests per operation, and as many walks along links.

    `opaque`: by the document's format, values that only the server can give.
    """
    for name, values in opaque.items():
        schemathesis.openapi.format(name, st.sampled_from(values))
    headers = {"headers": {"Authorization": f"Bearer {key}"}} if key else {}
    config = {
        "seed": 1,
        "continue-on-failure": True,
        "base-url": url,
        "max-stream-events": 20,
        "request-timeout": 20,
        "generation": {"deterministic": True, "no-shrink": True, "max-examples": examples},
        "phases": {"stateful": {"max-steps": 10}},
    }
    schema = schemathesis.openapi.from_dict(document, config=SchemathesisConfig.from_dict({**config, **headers}))
    report = Report()
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            _read(event.recorder, report)
        elif isinstance(event, events.NonFatalError | events.FatalError):
            report.troubles.append(event)
    return report


def _read(recorder: Any, report: Report) -> None:
    for case_id, exchange in recorder.interactions.items():
        if exchange.response is not None:
            report.answers[(recorder.cases[case_id].value.operation.label, exchange.response.status_code)] += 1
    for case_id, checks in recorder.checks.items():
        for check in checks:
            report.checks[check.name] += 1
            response = recorder.interactions[case_id].response
            if check.failure_info and not (check.name == "positive_data_acceptance" and _beyond(response.json())):
                failure = check.failure_info
                told = f"{failure.failure.message}\n{failure.code_sample[:2000]}\n{response.content[:1000]!r}"
                report.failures.append(f"{check.name}: {told}")


def _beyond(problem: dict[str, Any]) -> bool:
    first = problem.get("errors", [{"field": "", "rule": ""}])[0]
    listed = first["field"].partition(".")[0]
    field = listed if listed in ("mcp_servers", "tools", "approvals", "results") else first["field"]
    named = field in BEYOND_A_SCHEMA and first["rule"].startswith(OF_OUR_OWN)
    return named or problem["code"] in CODES_BEYOND
