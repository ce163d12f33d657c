"""What a block that a client brings may hold."""

from datetime import UTC, datetime

import pytest

from app.context.archive import render_section
from app.context.block_fields import KINDS, first_fault
from app.context.blocks import without_breakpoints
from app.context.estimate import HeuristicEstimator
from app.context.view import render_view
from app.conversation.messages import Message, StoredMessage
from app.conversation.request import ModelRequest

AT = datetime(2026, 1, 1, tzinfo=UTC)
TEXT = {"type": "text", "text": "a"}
PNG = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "AA=="}
WEB = {"type": "url", "url": "https://example.test/a"}
PLAIN = {"type": "text", "media_type": "text/plain", "data": "words"}
CALL = {"type": "tool_use", "id": "any id", "name": "mcp__a-b_1", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "any id"}


def image(source, **more):
    return {"type": "image", "source": source, **more}


def document(source, **more):
    return {"type": "document", "source": source, **more}


def holding(content):
    return document({"type": "content", "content": content})


LEGAL = [
    TEXT,
    {**TEXT, "citations": None},
    {**TEXT, "citations": [{"type": "char_location"}], "cache_control": {"type": "ephemeral"}},
    image(PNG),
    image(WEB),
    document(PDF, title=None, context="c", citations={"enabled": True}),
    document(WEB),
    document(PLAIN, citations=None),
    holding("words"),
    holding([TEXT, image(PNG)]),
    CALL,
    {**CALL, "caller": {"type": "direct"}},
    RESULT,
    {**RESULT, "content": "", "is_error": True},
    {**RESULT, "content": [{"type": "text", "text": ""}, image(PNG), document(PLAIN)], "is_error": False},
    {"type": "thinking", "thinking": ""},
    {"type": "thinking", "thinking": "a", "signature": "s"},
    {"type": "redacted_thinking", "data": "d"},
]
# Block, place, words of the rule.
ILLEGAL = [
    ("text", "", "must be an object"),
    ({}, ".type", "must be one of"),
    ({"type": ["text"]}, ".type", "must be one of"),
    ({"type": "server_tool_use", "id": "a", "name": "b", "input": {}}, ".type", "must be one of"),
    ({"type": "text"}, ".text", "a string"),
    ({**TEXT, "foo": 1}, ".foo", "a text block has no such field"),
    ({**TEXT, "f" * 99: 1}, "." + "f" * 64, "no such field"),
    ({**TEXT, "citations": {}}, ".citations", "a list of objects or null"),
    ({**TEXT, "citations": ["x"]}, ".citations", "a list of objects or null"),
    (image({**PNG, "media_type": "image/bmp"}), ".source.media_type", "image/jpeg, image/png, image/gif, image/webp"),
    (image(PDF), ".source.media_type", "image/jpeg"),
    (image({**PNG, "data": ""}), ".source.data", "base64"),
    (image({**PNG, "data": "AA\nA="}), ".source.data", "base64"),
    (image({**PNG, "data": "é"}), ".source.data", "base64"),
    (image({**PNG, "data": 7}), ".source.data", "base64"),
    (image({**PNG, "name": "x"}), ".source.name", "a base64 source has no such field"),
    (image(PLAIN), ".source.type", "one of base64, url"),
    (image({"type": "file", "file_id": "f"}), ".source.type", "one of base64, url"),
    (image({"type": []}), ".source.type", "one of base64, url"),
    (image(None), ".source", "an object"),
    (image({"type": "url", "url": "file:///etc/passwd"}), ".source.url", "URL"),
    (image(PNG, title="x"), ".title", "no such field"),
    (document(PNG), ".source.media_type", "application/pdf"),
    (document({**PLAIN, "data": " \n"}), ".source.data", "not blank"),
    (document({**PLAIN, "media_type": "text/html"}), ".source.media_type", "text/plain"),
    (document(PDF, title=7), ".title", "a string or null"),
    (document(PDF, citations={"enabled": 1}), ".citations", "enabled"),
    (document(PDF, citations={"on": True}), ".citations", "enabled"),
    (holding(" "), ".source.content", "not blank"),
    (holding([]), ".source.content", "must not be blank"),
    (holding([{"type": "text", "text": " "}]), ".source.content", "must not be blank"),
    (holding([holding("x")]), ".source.content.0.type", "one of image, text"),
    (holding(7), ".source.content", "a string or a list"),
    ({**CALL, "name": "a b"}, ".name", "1 to 128"),
    ({**CALL, "name": "a" * 129}, ".name", "1 to 128"),
    ({**CALL, "name": "a\n"}, ".name", "1 to 128"),
    ({**CALL, "input": "{}"}, ".input", "an object"),
    ({**CALL, "caller": {"type": "code_execution"}}, ".caller", "direct"),
    ({**RESULT, "is_error": 1}, ".is_error", "true or false"),
    ({**RESULT, "content": [image(PNG)], "is_error": True}, ".content.0.type", "must be text, since is_error is true"),
    ({**RESULT, "is_error": None}, ".is_error", "true or false"),
    ({**RESULT, "content": None}, ".content", "a string or a list of blocks"),
    ({**RESULT, "content": [CALL]}, ".content.0.type", "one of document, image, text"),
    ({**RESULT, "content": [{**TEXT, "foo": 1}]}, ".content.0.foo", "no such field"),
    ({"type": "thinking", "thinking": "a", "signature": None}, ".signature", "a string"),
    ({"type": "redacted_thinking"}, ".data", "a string"),
]  # fmt: skip


@pytest.mark.parametrize("block", LEGAL)
def test_what_the_provider_takes_is_taken(block):
    assert first_fault([block], "content", KINDS) is None


@pytest.mark.parametrize(("block", "place", "words"), ILLEGAL)
def test_what_the_provider_refuses_is_named_by_place_and_limit(block, place, words):
    fault = first_fault([TEXT, block], "content", KINDS)
    assert fault is not None
    assert fault.place == f"content.1{place}"
    assert words in fault.rule


def test_a_kind_that_may_not_stand_there_is_refused():
    assert first_fault([CALL], "system", {"text"}).rule == "must be one of text"


@pytest.mark.parametrize("block", LEGAL)
def test_what_is_taken_can_be_estimated_shown_and_archived(block):
    user = block["type"] not in ("tool_use", "thinking", "redacted_thinking")
    row = StoredMessage("msg_1", 1, None, "user" if user else "assistant", (block,), None, None, True, True, AT)
    after = StoredMessage("msg_2", 2, None, "user", (TEXT,), None, None, True, True, AT)
    request = ModelRequest("m", 1, "", (), (), (Message(row.role, row.content),))
    assert HeuristicEstimator().estimate_request(request) > 0
    assert render_view([row, after])[-1].content[-1] == TEXT
    assert block["type"] in render_section([row], "ses_1", 1) or block["type"].startswith("tool")


def test_breakpoints_inside_a_document_are_left_out_too():
    mark = {"cache_control": {"type": "ephemeral"}}
    marked = holding([{**TEXT, **mark}])
    assert first_fault([{**marked, **mark}], "content", KINDS) is None
    assert without_breakpoints(({**marked, **mark},)) == (holding([TEXT]),)
