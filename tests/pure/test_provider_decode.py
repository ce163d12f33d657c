"""What a stream of the Messages API means: pieces while it runs, whole blocks at its end."""

import json

import pytest

from app.conversation.reply import BlockOpened, Delta, Reply, UsageSeen
from app.conversation.usage import Usage
from app.errors import ProviderFailure
from app.providers.anthropic.decode import ReplyDecoder

USAGE = {"input_tokens": 27, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 50, "output_tokens": 1}


def event(kind, **fields):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def start(usage=USAGE):
    return event("message_start", message={"role": "assistant", "content": [], "usage": usage})


def opened(index, block):
    return event("content_block_start", index=index, content_block=block)


def delta(index, kind, **fields):
    return event("content_block_delta", index=index, delta={"type": kind, **fields})


def closed(index):
    return event("content_block_stop", index=index)


def end(reason="end_turn", usage=None):
    return event("message_delta", delta={"stop_reason": reason}, usage=usage or {}) + event("message_stop")


def text(index, *pieces):
    return opened(index, {"type": "text", "text": ""}) + b"".join(
        delta(index, "text_delta", text=piece) for piece in pieces
    )


def tool(index, *pieces, name="write_file"):
    first = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
    return opened(index, first) + b"".join(delta(index, "input_json_delta", partial_json=piece) for piece in pieces)


def decode(*parts):
    decoder = ReplyDecoder()
    return [item for part in parts for item in decoder.feed(part)]


def reply(*parts):
    found = decode(*parts)[-1]
    assert isinstance(found, Reply)
    return found


def test_a_text_comes_as_pieces_and_then_whole():
    assert decode(start(), text(0, "Hel", "", "lo"), event("ping"), closed(0), end()) == [
        UsageSeen(Usage(27, 900, 50, 1, calls=1)),
        BlockOpened(0, {"type": "text"}),
        Delta(0, "text", "Hel"),
        Delta(0, "text", "lo"),
        Reply(({"type": "text", "text": "Hello"},), "end_turn", Usage(27, 900, 50, 1, calls=1), {}),
    ]


def test_a_text_that_opens_with_words_keeps_them():
    items = decode(
        start(), opened(0, {"type": "text", "text": "Hi"}), delta(0, "text_delta", text="!"), closed(0), end()
    )
    assert [item.text for item in items if isinstance(item, Delta)] == ["Hi", "!"]
    assert items[-1].content == ({"type": "text", "text": "Hi!"},)


def test_later_usage_overwrites_and_null_says_nothing():
    final = {"output_tokens": 60, "input_tokens": 30, "cache_read_input_tokens": None}
    assert reply(start(), end(usage=final)).usage == Usage(30, 900, 50, 60, calls=1)
    assert reply(start({"input_tokens": 5, "cache_read_input_tokens": None}), end()).usage == Usage(5, calls=1)
    assert reply(start(None), end()).usage == Usage(calls=1)


def test_a_call_holds_its_arguments_exactly():
    big = 2**80
    answer = reply(
        start(), tool(0, '{"n": 123', "4", "}"), closed(0), tool(1, f'{{"n": {big}}}'), closed(1), end("tool_use")
    )
    assert [block["input"] for block in answer.content] == [{"n": 1234}, {"n": big}]
    assert answer.broken == {}


def test_a_call_without_arguments_is_an_empty_object():
    answer = reply(start(), tool(0, ""), closed(0), tool(1), closed(1), end("tool_use"))
    assert [block["input"] for block in answer.content] == [{}, {}]
    assert answer.broken == {}


@pytest.mark.parametrize(
    "arguments",
    [
        '{"path": "a',
        "[1]",
        '"a"',
        "null",
        '{"n": NaN}',
        '{"a":' * 5000,
        '{"a": 1} x',
        '{"n": 1e400}',
        '{"n": [-1e999]}',
    ],
)
def test_arguments_that_are_no_object_are_broken(arguments):
    answer = reply(
        start(), text(0, "a"), closed(0), tool(1, arguments), closed(1), tool(2, "{}"), closed(2), end("tool_use")
    )
    assert [block.get("input") for block in answer.content] == [None, {}, {}]
    assert list(answer.broken) == [1]
    assert answer.broken[1].startswith("the arguments are no JSON")


@pytest.mark.parametrize("stop", [b"", closed(0)])
def test_a_call_cut_by_max_tokens_says_so(stop):
    answer = reply(start(), tool(0, '{"path": "a'), stop, end("max_tokens"))
    assert answer.content == ({"type": "tool_use", "id": "toolu_0", "name": "write_file", "input": {}},)
    assert answer.broken == {0: "cut off by max_tokens"}


def test_an_unfinished_call_is_kept_as_broken_whatever_the_stop_reason():
    assert reply(start(), tool(0, "{}"), end("tool_use")).broken == {0: "the call was never finished"}


def test_thinking_is_kept_with_its_signature_and_dropped_without():
    first = {"type": "thinking", "thinking": "", "signature": ""}
    whole = (
        opened(0, first) + delta(0, "thinking_delta", thinking="Hm.") + delta(0, "signature_delta", signature="s1g==")
    )
    cut = opened(1, first) + delta(1, "thinking_delta", thinking="Half")
    hidden = {"type": "redacted_thinking", "data": "opaque"}
    answer = reply(
        start(), whole, closed(0), cut, closed(1), opened(2, hidden), closed(2), tool(3, "["), closed(3), end()
    )
    assert answer.content[:2] == ({"type": "thinking", "thinking": "Hm.", "signature": "s1g=="}, hidden)
    assert list(answer.broken) == [2]
    assert reply(start(), whole, end()).content == ()


def test_a_text_that_was_shown_and_never_closed_is_stored_as_it_was_shown():
    items = decode(start(), text(0, "all of ", "it"), end())
    shown = "".join(item.text for item in items if isinstance(item, Delta))
    assert items[-1].content == ({"type": "text", "text": shown},)


def test_deltas_of_an_unknown_type_change_no_block_of_a_known_one():
    first = {"type": "thinking", "thinking": "", "signature": ""}
    items = reply(
        start(), text(0, "Hi"), delta(0, "future_delta", text="lost", type_hint="x", extra=1), closed(0),
        opened(1, first), delta(1, "thinking_delta", thinking="Hm."), delta(1, "signature_delta", signature="s"),
        delta(1, "future_delta", signature="forged"), closed(1),
        tool(2, "{}"), delta(2, "future_delta", id="other", input={"a": 1}), closed(2), end(),
    )  # fmt: skip
    assert items.content == (
        {"type": "text", "text": "Hi"},
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "tool_use", "id": "toolu_2", "name": "write_file", "input": {}},
    )


def test_what_is_not_known_stays_as_it_came():
    block = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "u", "page_age": None}]}
    grown = {"type": "compaction", "content": None, "parts": [1], "mode": "a"}
    answer = reply(
        start(), opened(0, block), closed(0), opened(1, grown),
        delta(1, "compaction_delta", content="Sum", parts=[2]), delta(1, "compaction_delta", content="mary", mode=3),
        closed(1), event("future_event", anything=1), b"event: other\ndata: no json\n\n", end("a_new_reason"),
    )  # fmt: skip
    assert answer.content == (block, {"type": "compaction", "content": "Summary", "parts": [1, 2], "mode": 3})
    assert answer.stop_reason == "a_new_reason"


def test_the_input_of_a_server_tool_is_read_like_any_other():
    first = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    answer = reply(
        start(), opened(0, first), delta(0, "input_json_delta", partial_json='{"query": "x"}'), closed(0), end()
    )
    assert answer.content == ({**first, "input": {"query": "x"}},)


def test_citations_stay_with_their_text():
    cited = [delta(0, "citations_delta", citation={"cited_text": words}) for words in ("a", "b")]
    block = reply(start(), text(0, "A."), *cited, closed(0), end()).content[0]
    assert block == {"type": "text", "text": "A.", "citations": [{"cited_text": "a"}, {"cited_text": "b"}]}


def test_a_refusal_may_be_empty():
    assert reply(start(), end("refusal")) == Reply((), "refusal", Usage(27, 900, 50, 1, calls=1), {})


def test_unstorable_characters_are_replaced_in_text_keys_and_arguments():
    given = r'{"k\u0000": "v\ud800", "literal": "\\u0000", "emoji": "\ud83d\ude00"}'
    items = decode(
        start(),
        text(0, "a\x00b", "\ud800", "😀", r"\u0000"),
        closed(0),
        tool(1, given[:30], given[30:]),
        closed(1),
        end(),
    )
    assert [item.text for item in items if isinstance(item, Delta) and item.kind == "text"] == [
        "a\ufffdb", "\ufffd", "😀", r"\u0000",
    ]  # fmt: skip
    assert items[-1].content[0]["text"] == "a\ufffdb\ufffd😀\\u0000"
    assert items[-1].content[1]["input"] == {"k\ufffd": "v\ufffd", "literal": r"\u0000", "emoji": "😀"}


def test_invalid_utf8_is_replaced():
    broken = text(0, "aXb").replace(b"X", b"\xff")
    assert reply(start(), broken, closed(0), end()).content == ({"type": "text", "text": "a\ufffdb"},)


def test_what_came_before_an_error_in_the_same_bytes_is_seen_first():
    decoder, seen = ReplyDecoder(), []
    error = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    with pytest.raises(ProviderFailure) as caught:
        seen.extend(decoder.feed(start() + text(0, "shown") + error))
    assert seen[-1] == Delta(0, "text", "shown")
    assert caught.value.code == "provider_overloaded"
    assert caught.value.transient


@pytest.mark.parametrize(
    "bad",
    [
        event("message_stop"),
        event("message_delta", delta={"stop_reason": None}, usage={}) + event("message_stop"),
        b"event: message_delta\ndata: {\n\n",
        b"event: content_block_start\ndata: []\n\n",
        b"data: 7\n\n",
        end(7),
        end(["end_turn"]),
        delta(4, "text_delta", text="no such block"),
        b'event: content_block_start\ndata: {"text":"\\u0000","index":' + b"[" * 600 + b"]" * 600 + b"}\n\n",
    ],
)
def test_a_stream_that_makes_no_sense_is_a_transient_failure(bad):
    with pytest.raises(ProviderFailure) as caught:
        decode(start(), bad)
    assert (caught.value.code, caught.value.transient) == ("provider_error", True)


def test_nothing_is_read_after_the_end():
    decoder = ReplyDecoder()
    items = list(decoder.feed(start() + end() + event("error", error={"type": "api_error"})))
    assert isinstance(items[-1], Reply)
    assert decoder.done


@pytest.mark.parametrize(
    ("kind", "message", "code", "transient"),
    [
        ("overloaded_error", "Overloaded", "provider_overloaded", True),
        ("rate_limit_error", "too many tokens", "provider_overloaded", True),
        ("api_error", "Internal", "provider_error", True),
        ("timeout_error", "", "provider_error", True),
        ("a_new_error", "what", "provider_error", True),
        ("invalid_request_error", "prompt is too long: 2 tokens > 1 maximum", "context_overflow", False),
        ("invalid_request_error", "messages.7: no", "provider_rejected", False),
        ("request_too_large", "", "context_overflow", False),
        ("authentication_error", "invalid x-api-key", "provider_rejected", False),
        (None, None, "provider_error", True),
    ],
)
def test_an_error_event_is_told_by_its_type(kind, message, code, transient):
    with pytest.raises(ProviderFailure) as caught:
        decode(start(), event("error", error={"type": kind, "message": message}))
    failure = caught.value
    assert (failure.code, failure.transient, failure.provider_status) == (code, transient, 200)
    assert failure.detail == message or not message
