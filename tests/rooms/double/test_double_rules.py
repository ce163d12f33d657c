"""Every rule: a request that breaks it is refused with the API's words, its legal neighbour is answered."""

from typing import Any

import pytest
from anthropic import BadRequestError

from tests.double.control import Double
from tests.double.steps import say
from tests.rooms.double.words import Client, ask, assistant, cached, image, result, text, tool, use, user

TWO = assistant(use("t1"), use("t2"))
SCHEMA: dict[str, Any] = {"type": "object"}
MANUAL = {"type": "enabled", "budget_tokens": 1024}

# name: (broken request, part of the refusal, legal neighbour)
RULES: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "call_without_result": (
        ask(user("a"), assistant(use()), user("b")),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1. Each",
        ask(user("a"), assistant(use()), user(result(), "b")),
    ),
    "all_missing_results_are_named": (
        ask(user("a"), assistant(use("t1"), use("t2"), use("t3")), user(result("t2"))),
        "immediately after: t1, t3. Each",
        ask(user("a"), TWO, user(result("t2"), result("t1"))),
    ),
    "batch_split_over_two_messages": (
        ask(user("a"), TWO, user(result("t1")), user(result("t2"))),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t2",
        ask(user("a"), TWO, user(result("t1"), result("t2")), user("b")),
    ),
    "results_not_first": (
        ask(user("a"), assistant(use()), user("b", result())),
        "messages.1: `tool_use` ids were found without",
        ask(user("a"), assistant(use()), user(result(), "b")),
    ),
    "text_after_call": (
        ask(user("a"), assistant(use("t1"), "so", use("t2")), user(result("t1"), result("t2"))),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1. Each",
        ask(user("a"), assistant("so", use("t1"), use("t2")), user(result("t1"), result("t2"))),
    ),
    "call_in_last_message": (
        ask(user("a"), assistant(use())),
        "messages.1: `tool_use` ids were found without",
        ask(user("a"), assistant("b"), user("c")),
    ),
    "result_of_an_older_call": (
        ask(user("a"), assistant(use()), user(result()), assistant("b"), user(result())),
        "messages.4.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1. Each",
        ask(user("a"), assistant(use()), user(result()), assistant("b"), user("c")),
    ),
    "two_results_for_one_call": (
        ask(user("a"), assistant(use()), user(result(), result())),
        "messages.2.content.1: each tool_use must have a single result. Found multiple",
        ask(user("a"), assistant(use()), user(result())),
    ),
    "call_id_used_twice": (
        ask(user("a"), assistant(use()), user(result()), assistant(use()), user(result())),
        "messages.3.content.0: `tool_use` ids must be unique",
        ask(user("a"), assistant(use()), user(result()), assistant(use("t2")), user(result("t2"))),
    ),
    "call_id_pattern": (
        ask(user("a"), assistant(use("a.b")), user(result("a.b"))),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        ask(user("a"), assistant(use("a-b_1")), user(result("a-b_1"))),
    ),
    "called_name_pattern": (
        ask(user("a"), assistant({**use(), "name": "a b"}), user(result())),
        "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        ask(user("a"), assistant({**use(), "name": "a_b"}), user(result())),
    ),
    "blank_text": (ask(user(" \n")), "messages: text content blocks must be non-empty", ask(user(" x"))),
    "empty_text": (ask(user("a", "")), "messages: text content blocks must be non-empty", ask(user("a"))),
    "blank_text_in_result": (
        ask(user("a"), assistant(use()), user(result(content=[text(" ")]))),
        "messages: text content blocks must be non-empty",
        ask(user("a"), assistant(use()), user(result(content=""))),
    ),
    "blank_system": (ask(system=" "), "system: text content blocks must be non-empty", ask(system="s")),
    "empty_content": (ask(user()), "messages.0: all messages must have non-empty content", ask(user("a"))),
    "mark_on_empty_text": (
        ask(user("a", text("", **cached()))),
        "cache_control cannot be set for empty text blocks",
        ask(user("a", text("b", **cached()))),
    ),
    "mark_on_thinking": (
        ask(user("a"), assistant({"type": "thinking", "thinking": "t", "signature": "s", **cached()}), user("b")),
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
        ask(user("a"), assistant(text("b", **cached())), user("c")),
    ),
    "mark_on_deferred_tool": (
        ask(tools=[tool(defer_loading=True, **cached())]),
        "cache_control cannot be set on a tool with defer_loading",
        ask(tools=[tool(**cached())]),
    ),
    "five_marks": (
        ask(user(*(text("a", **cached()) for _ in range(5)))),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ask(user(*(text("a", **cached()) for _ in range(4)))),
    ),
    "long_mark_after_short": (
        ask(user(text("a", **cached("1h"))), tools=[tool(**cached())]),
        "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'",
        ask(user(text("a", **cached())), tools=[tool(**cached("1h"))]),
    ),
    "unknown_lifetime": (ask(user(text("a", **cached("2h")))), "ttl: Input should be '5m' or '1h'", ask()),
    "prefill": (
        ask(user("a"), assistant("b")),
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        ask(user("a"), assistant("b"), model="claude-haiku-4-5"),
    ),
    "prefill_ends_in_space": (
        ask(user("a"), assistant("b "), model="claude-haiku-4-5"),
        "messages: final assistant content cannot end with trailing whitespace",
        ask(user("a"), assistant("b"), model="claude-haiku-4-5-20251001"),
    ),
    "first_message_assistant": (
        ask(assistant("a"), user("b")),
        'messages: first message must use the "user" role',
        ask(user("b"), assistant("a"), user("c")),
    ),
    "no_message": ({**ask(), "messages": []}, "messages: at least one message is required", ask()),
    "max_tokens_over_maximum": (
        ask(max_tokens=64_001),
        "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-6",
        ask(max_tokens=64_000),
    ),
    "old_model_sums_input_and_output": (
        ask(user("a" * 420_000), max_tokens=64_000, model="claude-3-7-sonnet"),
        "+ 64000 > 200000, decrease input length or `max_tokens` and try again",
        ask(user("a" * 420_000), max_tokens=10_000, model="claude-3-7-sonnet"),
    ),
    "tool_name": (
        ask(tools=[tool("a b")]),
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'",
        ask(tools=[tool("a_b")]),
    ),
    "tool_names_unique": (ask(tools=[tool("a"), tool("a")]), "Tool names must be unique", ask(tools=[tool("a")])),
    "schema_with_top_level_choice": (
        ask(tools=[{"name": "a", "input_schema": {**SCHEMA, "anyOf": [{}]}}]),
        "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
        ask(tools=[{"name": "a", "input_schema": {**SCHEMA, "properties": {"x": {"anyOf": [{}]}}}}]),
    ),
    "schema_without_type": (
        ask(tools=[{"name": "a", "input_schema": {}}]),
        "tools.0.custom.input_schema.type",
        ask(tools=[{"name": "a", "input_schema": SCHEMA}]),
    ),
    "budget_not_under_max_tokens": (
        ask(thinking=MANUAL, max_tokens=1024),
        "`max_tokens` must be greater than `thinking.budget_tokens`",
        ask(thinking=MANUAL, max_tokens=1025),
    ),
    "budget_too_small": (
        ask(thinking={"type": "enabled", "budget_tokens": 1023}, max_tokens=5000),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        ask(thinking=MANUAL, max_tokens=5000),
    ),
    "thinking_with_forced_tool": (
        ask(thinking={"type": "adaptive"}, tool_choice={"type": "any"}),
        "Thinking may not be enabled when tool_choice forces tool use.",
        ask(thinking={"type": "disabled"}, tool_choice={"type": "any"}),
    ),
    "binding_setting_without_beta": (
        ask(thinking={"type": "adaptive", "block_binding": {}}),
        "thinking.adaptive.block_binding: Extra inputs are not permitted",
        ask(
            thinking={"type": "adaptive", "block_binding": {}},
            extra_headers={"anthropic-beta": "thinking-binding-controls-2026-08-01"},
        ),
    ),
    "manual_thinking_missing_in_open_loop": (
        ask(user("a"), assistant("b", use()), user(result()), thinking=MANUAL, max_tokens=5000),
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When",
        ask(user("a"), assistant(use()), user(result()), assistant("b"), user("c"), thinking=MANUAL, max_tokens=5000),
    ),
    "images_over_the_limit": (
        ask(user(*(image() for _ in range(101))), model="claude-haiku-4-5"),
        "too many images and documents: 101 > 100",
        ask(user(*(image() for _ in range(100))), model="claude-haiku-4-5"),
    ),
    "images_in_results_count": (
        ask(user("a"), assistant(use()), user(result(content=[image()] * 601))),
        "too many images and documents: 601 > 600",
        ask(user("a"), assistant(use()), user(result(content=[image()] * 600))),
    ),
    "unknown_block": (
        ask(user({"type": "video"})),
        "messages.0.content.0: Input tag 'video' found using 'type'",
        ask(),
    ),
    "extra_field_of_block": (
        ask(user(text("a", seq=1))),
        "messages.0.content.0.text.seq: Extra inputs are not permitted",
        ask(user(text("a", citations=None))),
    ),
    "extra_field_of_message": (ask({**user("a"), "seq": 1}), "messages.0.seq: Extra inputs are not permitted", ask()),
    "extra_field_of_request": (ask(extra_body={"seq": 1}), "seq: Extra inputs are not permitted", ask()),
    "extra_metadata": (
        ask(metadata={"session": "s"}),
        "metadata.session: Extra inputs are not permitted",
        ask(metadata={"user_id": "s"}),
    ),
    "role_is_no_string": (ask({"role": 1, "content": "a"}), "messages.0.role: Input should be", ask()),
    "system_role": (ask({"role": "system", "content": "a"}), "messages.0.role: Input should be", ask()),
    "call_in_user_message": (ask(user(use())), "`tool_use` blocks can only be in `assistant` messages", ask()),
    "input_is_no_object": (
        ask(user("a"), assistant(use(input="{}")), user(result())),
        "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        ask(user("a"), assistant(use(input={"a": 1})), user(result())),
    ),
    "media_in_an_error": (
        ask(user("a"), assistant(use()), user(result(content=[image()], is_error=True))),
        "messages.2.content.0.tool_result: all content must be type `text`",
        ask(user("a"), assistant(use()), user(result(content=[image()], is_error=False))),
    ),
    "empty_error": (
        ask(user("a"), assistant(use()), user(result(content="", is_error=True))),
        "messages.2.content.0.tool_result: content cannot be empty",
        ask(user("a"), assistant(use()), user(result(content=""))),
    ),
    "missing_field": (
        ask(user("a"), assistant({"type": "tool_use", "id": "t1", "input": {}}), user(result())),
        "messages.1.content.0.tool_use.name: Field required",
        ask(user("a"), assistant(use()), user(result())),
    ),
}


@pytest.mark.parametrize("rule", RULES)
async def test_a_broken_rule_is_refused_and_its_legal_neighbour_answered(
    rule: str, double: Double, connect: Client
) -> None:
    broken, words, legal = RULES[rule]
    client = connect(double)
    double.script(say("fine"))
    with pytest.raises(BadRequestError) as refusal:
        await client.messages.create(**broken)
    body: Any = refusal.value.body
    assert words in body["error"]["message"]
    assert body["type"] == "error"
    assert body["error"]["type"] == "invalid_request_error"
    assert body["request_id"] == refusal.value.request_id
    assert double.requests[0].broke_rule
    answer = await client.messages.create(**legal)
    assert answer.content[0].to_dict() == {"type": "text", "text": "fine"}
    double.assert_spent()


async def test_counting_makes_the_same_checks(double: Double, connect: Client) -> None:
    count: Any = connect(double).messages.count_tokens
    with pytest.raises(BadRequestError, match="immediately after: t1"):
        await count(model="claude-sonnet-4-6", messages=[user("a"), assistant(use()), user("b")])
    counted = await count(model="claude-sonnet-4-6", messages=[user("a" * 30)])
    assert counted.input_tokens == 14


async def test_neighbours_of_one_role_are_accepted_and_counted(double: Double, connect: Client) -> None:
    double.script(say("fine"))
    await connect(double).messages.create(**ask(user("a"), user("b"), assistant("c"), user("d"), user("e")))
    assert double.requests[0].merged == 2


async def test_a_pause_turn_may_be_sent_back_as_the_last_message(double: Double, connect: Client) -> None:
    client = connect(double)
    double.script(say("one moment", stop_reason="pause_turn"), say("done"))
    paused = await client.messages.create(**ask())
    assert paused.stop_reason == "pause_turn"
    with pytest.raises(BadRequestError, match="prefill"):
        await client.messages.create(**ask(user("hi"), assistant("another moment")))
    done = await client.messages.create(**ask(user("hi"), assistant("one moment")))
    assert done.stop_reason == "end_turn"
