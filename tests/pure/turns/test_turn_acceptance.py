"""What a posted turn must be before anything is stored."""

import pytest

from app.context.estimate import HeuristicEstimator
from app.conversation.messages import text_block
from app.conversation.model_profile import ModelProfile
from app.conversation.request import ModelRequest, ToolDefinition
from app.conversation.run import RunInput
from app.errors import InputTooLarge, InvalidPayload
from app.turns.acceptance import accept_input, check_size

SMALL = ModelProfile("small", max_input_tokens=4096, max_output_tokens=3000)
TOOL = ToolDefinition("read_file", "Reads a file.", {"type": "object"})
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}}


def accepted(content) -> tuple:
    return accept_input(content, None, None, {}).content


def field_of(refused: pytest.ExceptionInfo[InvalidPayload]) -> str:
    [error] = refused.value.extra["errors"]
    return error["field"]


def test_a_string_is_one_text_block():
    assert accepted("hello") == (text_block("hello"),)


def test_input_is_cleaned_with_its_keys_and_metadata():
    cited = {"type": "text", "text": "a\x00", "citations": [{"k\x00": "\ud800"}]}
    run_input = accept_input([cited], "m", 5, {"a\x00": ["\x00"]})
    assert run_input.content == ({"type": "text", "text": "a\ufffd", "citations": [{"k\ufffd": "\ufffd"}]},)
    assert (run_input.model, run_input.max_tokens, run_input.metadata) == ("m", 5, {"a\ufffd": ["\ufffd"]})


def test_breakpoints_of_the_client_are_not_stored():
    assert accepted([{**text_block("a"), "cache_control": {"type": "ephemeral"}}, IMAGE]) == (text_block("a"), IMAGE)


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("", "content.0.text"),
        (" \n", "content.0.text"),
        ([], "content"),
        ([text_block("ok"), text_block("\t")], "content.1.text"),
        ([{"type": "text"}], "content.0.text"),
        ([{"type": "text", "text": 5}], "content.0.text"),
        ([{"type": "tool_result", "tool_use_id": "a", "content": "x"}], "content.0.type"),
        ([IMAGE, {"type": "tool_use"}], "content.1.type"),
        ([{"text": "no type"}], "content.0.type"),
        ([{**text_block("x"), "foo": 1}], "content.0.foo"),
        ([{**text_block("x"), "content": ["x"]}], "content.0.content"),
    ],
)
def test_content_that_no_request_could_carry_is_refused_by_its_field(content, field):
    with pytest.raises(InvalidPayload) as refused:
        accepted(content)
    assert field_of(refused) == field


def test_an_input_that_can_never_fit_is_refused_with_the_numbers():
    with pytest.raises(InputTooLarge) as refused:
        check_size((), RunInput((text_block("word " * 20_000),)), SMALL, [TOOL], HeuristicEstimator())
    numbers = refused.value.extra
    assert numbers["max_input_tokens"] == 4096
    assert numbers["input_tokens"] > 4096 > numbers["fixed_tokens"] > 0


def test_an_input_over_the_window_only_by_the_bound_of_the_estimate_is_accepted():
    """The estimate of `edge` is above the window, and by less than it may be wrong."""
    estimator, edge = HeuristicEstimator(), RunInput((text_block("word " * 3000),))
    estimate = estimator.estimate(edge.content[0]["text"])
    window = ModelProfile("edge", max_input_tokens=int(estimate * 0.9))
    assert check_size((), edge, window, [], estimator) is None
    with pytest.raises(InputTooLarge):
        check_size((), edge, ModelProfile("edge", max_input_tokens=int(estimate * 0.8)), [], estimator)


def test_the_system_counts_in_what_can_fit():
    estimator, system = HeuristicEstimator(), (text_block("word " * 20_000),)
    with pytest.raises(InputTooLarge) as refused:
        check_size(system, RunInput((text_block("hi"),)), SMALL, [], estimator)
    assert refused.value.extra["fixed_tokens"] == estimator.estimate_request(ModelRequest("small", 1, "", system, ()))
