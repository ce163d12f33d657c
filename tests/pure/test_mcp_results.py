"""What a server answered, as a tool result."""

import pytest

from app.mcp.results import NOTHING, tool_result
from app.mcp.veil import Veil
from tests.mcp_server import PIXEL


def text(words: str) -> dict:
    return {"type": "text", "text": words}


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"content": [text("a"), text("b")]}, "a\nb"),
        ({"content": []}, NOTHING),
        ({"content": [text("  ")]}, NOTHING),
        ({"content": [text('{"a": 1}')], "structuredContent": {"a": 1}}, '{"a": 1}'),
        ({"content": [text("found one")], "structuredContent": {"a": 1}}, 'found one\n{"a": 1}'),
        ({"content": [text("3")], "structuredContent": {"result": 3}}, "3"),
        ({"content": [text("[" * 9000)], "structuredContent": {"a": 1}}, "[" * 9000 + '\n{"a": 1}'),
        ({"structuredContent": {"result": 3}}, '{"result": 3}'),
        (
            {"content": [{"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}]},
            "[audio, audio/wav, 3 bytes, not shown]",
        ),
        (
            {"content": [{"type": "image", "mimeType": "image/tiff", "data": "AAAA"}]},
            "[image, image/tiff, 3 bytes, not shown]",
        ),
        (
            {"content": [{"type": "image", "mimeType": "image/png", "data": "no base64"}]},
            "[image, image/png, 6 bytes, not shown]",
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "a://b", "text": "words"}}]},
            "[resource a://b, no media type]\nwords",
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "a://b", "mimeType": "x/y", "blob": "AAAA"}}]},
            "[resource a://b, x/y]\n[binary content, x/y, 3 bytes, not shown]",
        ),
        ({"content": [{"type": "hologram", "data": "AAAA"}]}, "[hologram content, not shown]"),
    ],
)  # fmt: skip
def test_what_is_no_image_becomes_text(answer: dict, shown: str):
    assert tool_result(answer).content == shown


def test_images_are_shown_up_to_a_number():
    image = {"type": "image", "mimeType": "image/png", "data": PIXEL}
    content = tool_result({"content": [image] * 22}).content
    assert [block["type"] for block in content].count("image") == 20


def test_an_error_holds_text_alone():
    result = tool_result(
        {"content": [text("no"), {"type": "image", "mimeType": "image/png", "data": PIXEL}], "isError": True}
    )
    assert result.is_error
    assert result.content == "no\n[an image, not shown]"


def test_header_values_are_hidden_wherever_they_are_said():
    veil = Veil({"Authorization": "Bearer canary-123", "X-Short": "on"})
    said = {"a canary-123": ["Bearer canary-123", {"x": "it is canary-123, on"}], "n": 1}
    assert veil.over(said) == {"a [hidden]": ["[hidden]", {"x": "it is [hidden], on"}], "n": 1}
