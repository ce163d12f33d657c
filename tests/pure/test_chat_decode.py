"""Chunks as stream items; what servers do differently is in test_openai_quirks."""

import pytest

from app.conversation.messages import text_block
from app.conversation.reply import BlockOpened, Delta, Reply, UsageSeen
from app.conversation.usage import Usage
from app.errors import ProviderFailure
from app.providers.openai.decode import ReplyDecoder
from tests.rooms.providers.openai_room import DONE, chunk, fragment, fragments


def decoded(*pieces: bytes):
    decoder = ReplyDecoder()
    return [item for piece in pieces for item in decoder.feed(piece)]


CALL = fragments(fragment('{"n":1}', "read", index=0, id="a"))
BLOCK = {"type": "tool_use", "id": "a", "name": "read", "input": {"n": 1}}


def test_text_and_a_call_are_shown_as_they_come_and_then_whole():
    counted = chunk(
        None, usage={"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
    )
    seen = decoded(
        chunk({"role": "assistant", "content": "a"}),
        chunk({"content": "b"}),
        CALL,
        chunk({}, "tool_calls"),
        counted,
        DONE,
    )
    assert seen == [
        UsageSeen(Usage(calls=1)),
        BlockOpened(0, {"type": "text"}),
        Delta(0, "text", "a"),
        Delta(0, "text", "b"),
        BlockOpened(1, {"type": "tool_use", "id": "a", "name": "read"}),
        Delta(1, "tool_input", '{"n":1}'),
        Reply((text_block("ab"), BLOCK), "tool_use", Usage(input=5, cache_read=4, output=3, calls=1), {}),
    ]


@pytest.mark.parametrize(
    ("finish", "has_call", "expected"),
    [
        ("stop", False, "end_turn"),
        ("stop", True, "tool_use"),
        ("eos", False, "end_turn"),
        ("tool_calls", True, "tool_use"),
        ("tool_calls", False, "end_turn"),
        ("function_call", True, "tool_use"),
        ("length", False, "max_tokens"),
        ("length", True, "max_tokens"),
        ("model_length", False, "model_context_window_exceeded"),
        ("content_filter", False, "refusal"),
        ("something_new", True, "something_new"),
    ],
)
def test_a_finish_reason_is_told_in_our_words(finish, has_call, expected):
    reply = decoded(*([CALL] if has_call else []), chunk({}, finish), DONE)[-1]
    assert reply.stop_reason == expected
    assert len(reply.content) == has_call


def test_a_refusal_is_text_and_its_own_reason():
    reply = decoded(chunk({"content": None, "refusal": "I will not."}), chunk({}, "stop"), DONE)[-1]
    assert (reply.content, reply.stop_reason) == ((text_block("I will not."),), "refusal")


def test_a_call_of_the_older_form_is_a_call():
    reply = decoded(
        chunk({"function_call": {"name": "read", "arguments": '{"n"'}}),
        chunk({"function_call": {"arguments": ":1}"}}),
        chunk({}, "function_call"),
        DONE,
    )[-1]
    assert reply.content == ({**BLOCK, "id": ""},)


def test_text_after_a_call_stands_before_it():
    reply = decoded(CALL, chunk({"content": "late"}), chunk({}, "tool_calls"), DONE)[-1]
    assert reply.content == (text_block("late"), BLOCK)


def test_a_broken_call_is_named_by_its_place():
    reply = decoded(chunk({"content": "a"}), fragments(fragment("{", "read", id="a")), chunk({}, "tool_calls"), DONE)[
        -1
    ]
    assert set(reply.broken) == {1}


def test_reasoning_is_left_out():
    reply = decoded(
        chunk({"reasoning_content": "hm"}),
        chunk({"reasoning": "hm", "content": ""}),
        chunk({"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "so"}]}),
        chunk({}, "stop"),
        DONE,
    )[-1]
    assert reply.content == (text_block("so"),)


@pytest.mark.parametrize("finish", ["error", "insufficient_system_resource", "abort", None])
def test_an_answer_that_was_given_up_is_no_answer(finish):
    with pytest.raises(ProviderFailure) as caught:
        decoded(chunk({"content": "half"}), chunk({}, finish), DONE)
    assert (caught.value.code, caught.value.transient) == ("provider_error", True)


@pytest.mark.parametrize("data", ["{", "[]", "7", '{"choices": [7]}', '{"choices": [{"delta": {"content": 7}}]}'])
def test_what_is_no_chunk_breaks_the_attempt(data):
    with pytest.raises(ProviderFailure, match="a chunk could not be read"):
        decoded(b"data: %s\n\n" % data.encode())
