"""The HTTP door keeps the promises of its own OpenAPI document, whatever is sent."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import settings

from tests.journeys.fuzz.document import fuzz
from tests.journeys.house import Build, House

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]

KEY = "a-key-of-some-length"
KEYS = {"api_keys": f"red:{KEY}"}
CHECKS = {
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance", "positive_data_acceptance", "negative_data_rejection", "use_after_free",
    "ensure_resource_availability", "unsupported_method", "allow_header_conformance",
}  # fmt: skip
WITH_KEYS = {"missing_required_header", "ignored_auth"}
# Every kind of answer was got, so that the checks had something to look at.
SEEN = {
    ("POST /v1/sessions", 201), ("POST /v1/sessions", 422), ("GET /v1/sessions", 200), ("GET /v1/sessions", 400),
    ("DELETE /v1/sessions/{session_id}", 204), ("GET /v1/sessions/{session_id}", 200),
    ("POST /v1/sessions/{session_id}/turns", 202), ("GET /v1/sessions/{session_id}/turns", 200),
    ("GET /v1/sessions/{session_id}/context", 200), ("GET /v1/sessions/{session_id}/events", 400),
    ("GET /v1/sessions/{session_id}/events", 200), ("POST /v1/sessions/{session_id}/compact", 200),
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "more"),
    [
        pytest.param(KEYS, WITH_KEYS, id="with keys"),
        pytest.param({}, set(), id="without keys", marks=pytest.mark.soak),
    ],
)
async def test_every_answer_is_one_that_the_document_promises(build: Build, options: dict[str, Any], more: set[str]):
    house = await build(**options)
    if options:
        house.http.headers["Authorization"] = f"Bearer {KEY}"
    document, opaque = await house.get("/openapi.json"), await lived_in(house)
    examples = settings.default.max_examples // 20
    report = await asyncio.to_thread(fuzz, document, house.url, KEY if options else None, opaque, examples)
    assert report.failures == []
    assert report.troubles == []
    assert (CHECKS | more) - set(report.checks) == set()
    assert SEEN - set(report.answers) == set()


async def lived_in(house: House) -> dict[str, Sequence[str]]:
    """Values of the opaque formats. More sessions than deletions, so that most requests meet one."""
    sessions = [await house.open() for _ in range(60)]
    await house.turn(sessions[-1], "Write notes.txt with the text hello.")
    cursors = [(await house.get("/v1/sessions", limit=size))["next"] for size in (1, 30)]
    paths = ["workspace", "workspace/notes.txt", "tool_results/000002-00.txt", "conversation_history/x.md", "memory"]
    ids = [session.rpartition("/")[2] for session in sessions]
    return {"session-id": ids, "cursor": cursors, "virtual-path": paths}
