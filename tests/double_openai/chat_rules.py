"""The rules of a well-formed chat, in the order they are checked."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tests.double.errors import Refused
from tests.double_openai import chat_shapes

Messages = Sequence[dict[str, Any]]


def answered(messages: Messages) -> None:
    """Each call is answered by the tool messages right behind it, once, in call order; no other message is a tool's."""
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                raise Refused(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    f"'tool_calls'. (messages[{index}])"
                )
            if message["tool_call_id"] != open_calls.pop(0):
                raise Refused(f"messages[{index}]: the results do not stand in call order.")
            continue
        unanswered(open_calls)
        open_calls = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(open_calls)) != len(open_calls):
            raise Refused(f"Duplicate value for 'tool_call_id' of messages[{index}].")
    unanswered(open_calls)


def unanswered(open_calls: Sequence[str]) -> None:
    if open_calls:
        raise Refused(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}"
        )


def order(messages: Messages) -> None:
    """Stricter than the API, as templates of many local models are: system first, then the user, who is also last."""
    roles = [message["role"] for message in messages]
    told = roles[1:] if roles[0] == "system" else roles
    if not told or told[0] != "user" or "system" in told:
        raise Refused("Conversation roles must begin with an optional system message and a user message.")
    if told[-1] not in ("user", "tool"):
        raise Refused("The last message must have the role 'user' or 'tool'.")
    if any(one == other != "tool" for one, other in pairwise(told)):
        raise Refused("Conversation roles must alternate user/assistant/user/assistant/...")


def check(body: dict[str, Any]) -> None:
    """All rules but the window. Raises Refused."""
    chat_shapes.top(body)
    chat_shapes.tools(body.get("tools"))
    for index, message in enumerate(body["messages"]):
        chat_shapes.message(message, f"messages[{index}]")
    answered(body["messages"])
    order(body["messages"])


def window(tokens: int, wanted: int, maximum: int, sums: bool) -> None:
    """`sums`: as servers do that refuse a prompt together with the room for its answer."""
    if tokens > maximum:
        raise Refused(
            f"This model's maximum context length is {maximum} tokens. However, your messages resulted in {tokens} "
            "tokens. Please reduce the length of the messages."
        )
    if sums and tokens + wanted > maximum:
        raise Refused(
            f"'max_tokens' or 'max_completion_tokens' is too large: {wanted}. This model's maximum context length is "
            f"{maximum} tokens and your request has {tokens} input tokens ({wanted} > {maximum} - {tokens})."
        )
