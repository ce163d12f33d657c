"""The rules of a well-formed conversation, each one function, in the order they are checked."""

from collections.abc import Mapping
from typing import Any

from tests.double.errors import Refused
from tests.double.request import THINKING, Message, Part, Request
from tests.double.settings import Settings

BINDING_BETA = "thinking-binding-controls-2026-08-01"


def calls_answered(request: Request) -> None:
    """Every tool_use is answered in the next user message, before anything else in it; no text after a call."""
    seen: set[str] = set()
    messages = request.messages
    for index, message in enumerate(messages):
        for position, part in enumerate(message.parts):
            if part.kind == "tool_use" and part.data["id"] in seen:
                raise Refused(f"messages.{index}.content.{position}: `tool_use` ids must be unique")
            if part.kind == "tool_use":
                seen.add(part.data["id"])
        if missing := unanswered(message, messages[index + 1] if index + 1 < len(messages) else None):
            raise Refused(
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )


def unanswered(message: Message, following: Message | None) -> list[str]:
    answered = set(following.results) if following and following.role == "user" else set()
    missing = [call for call in message.calls if call not in answered]
    kinds = [part.kind for part in message.parts]
    if not missing and message.calls and set(kinds[kinds.index("tool_use") :]) != {"tool_use"}:
        last = len(kinds) - 1 - next(n for n, kind in enumerate(reversed(kinds)) if kind != "tool_use")
        missing = [part.data["id"] for part in message.parts[:last] if part.kind == "tool_use"]
    return missing


def results_expected(request: Request) -> None:
    """Every tool_result names a call of the message right before, once."""
    before: Message | None = None
    for index, message in enumerate(request.messages):
        known = set(before.calls) if before else set()
        seen: set[str] = set()
        for position, part in enumerate(message.parts):
            if part.kind != "tool_result":
                continue
            name, where = part.data["tool_use_id"], f"messages.{index}.content.{position}"
            if name not in known:
                raise Refused(
                    f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {name}. Each `tool_result` "
                    "block must have a corresponding `tool_use` block in the previous message."
                )
            if name in seen:
                raise Refused(
                    f"{where}: each tool_use must have a single result. Found multiple `tool_result` blocks "
                    f"with id: {name}"
                )
            seen.add(name)
        before = message


def ends(request: Request, resumed: bool) -> None:
    """First message user; last one user, unless the model takes a prefill or a pause_turn goes on."""
    first, last = request.messages[0], request.messages[-1]
    if first.role != "user":
        raise Refused('messages: first message must use the "user" role')
    if last.role == "user" or resumed:
        return
    if not request.model.prefill:
        raise Refused(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    tail = last.parts[-1]
    if tail.kind == "text" and tail.data["text"] != tail.data["text"].rstrip():
        raise Refused("messages: final assistant content cannot end with trailing whitespace")


def marked(request: Request) -> list[tuple[str, Part]]:
    """(place, part) of every cache breakpoint, in the order tools, system, messages."""
    found = [(f"tools.{n}", part) for n, part in enumerate(request.tools)]
    found += [(f"system.{n}", part) for n, part in enumerate(request.system)]
    for index, message in enumerate(request.messages):
        found += [(f"messages.{index}.content.{n}", part) for n, part in enumerate(message.parts)]
    return [(place, part) for place, part in found if part.mark]


def breakpoints(request: Request) -> None:
    found = marked(request)
    count = len(found) + bool(request.body.get("cache_control"))
    if count > 4:
        raise Refused(f"A maximum of 4 blocks with cache_control may be provided. Found {count}.")
    short = False
    for place, part in found:
        if part.mark == "1h" and short:
            raise Refused(
                f"{place}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
                "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, "
                "`messages`."
            )
        short = short or part.mark == "5m"


def thinking_settings(request: Request) -> None:
    thinking: Mapping[str, Any] = request.body.get("thinking") or {"type": "disabled"}
    kind = thinking.get("type")
    if kind not in ("enabled", "adaptive", "disabled", "between_tools"):
        raise Refused(f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    allowed = {"type", "display", *(["budget_tokens"] if kind == "enabled" else [])}
    if BINDING_BETA in request.betas:
        allowed.add("block_binding")
    if extra := sorted(set(thinking) - allowed):
        raise Refused(f"thinking.{kind}.{extra[0]}: Extra inputs are not permitted")
    if kind == "enabled":
        budget(thinking, request)
    choice = (request.body.get("tool_choice") or {}).get("type")
    if kind != "disabled" and choice in ("any", "tool"):
        raise Refused("Thinking may not be enabled when tool_choice forces tool use.")


def budget(thinking: Mapping[str, Any], request: Request) -> None:
    tokens = thinking.get("budget_tokens")
    if not isinstance(tokens, int) or tokens < 1024:
        raise Refused("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if not request.counting and request.body["max_tokens"] <= tokens:
        raise Refused("`max_tokens` must be greater than `thinking.budget_tokens`.")


def manual_thinking_first(request: Request) -> None:
    """With manual thinking the assistant's side of an open tool loop begins with a thinking block."""
    if (request.body.get("thinking") or {}).get("type") != "enabled":
        return
    opening: tuple[int, Message] | None = None
    for index in range(len(request.messages) - 1, -1, -1):
        message = request.messages[index]
        if message.role == "user" and not message.results:
            break
        if message.role == "assistant":
            opening = (index, message)
    if opening and opening[1].parts[0].kind not in THINKING:
        raise Refused(
            f"messages.{opening[0]}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{opening[1].parts[0].kind}`. When `thinking` is enabled, a final `assistant` message must start with a "
            "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you "
            "include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."
        )


def sizes(request: Request) -> None:
    if request.media > request.model.max_media:
        raise Refused(f"messages: too many images and documents: {request.media} > {request.model.max_media}")
    wanted = request.body.get("max_tokens", 1)
    if wanted > request.model.max_output:
        raise Refused(
            f"max_tokens: {wanted} > {request.model.max_output}, which is the maximum allowed number of output tokens "
            f"for {request.body['model']}"
        )


def window(request: Request, tokens: int, settings: Settings) -> None:
    maximum, wanted = settings.window_of(request.model), request.body.get("max_tokens", 0)
    if tokens > maximum and (not request.counting or settings.count_refuses_overflow):
        raise Refused(f"prompt is too long: {tokens} tokens > {maximum} maximum")
    if request.model.sums_max_tokens and tokens + wanted > maximum and not request.counting:
        raise Refused(
            f"input length and `max_tokens` exceed context limit: {tokens} + {wanted} > {maximum}, decrease input "
            "length or `max_tokens` and try again"
        )


def check(request: Request, settings: Settings, resumed: bool) -> None:
    """All rules but signatures and the window. Raises Refused."""
    calls_answered(request)
    results_expected(request)
    ends(request, resumed)
    breakpoints(request)
    thinking_settings(request)
    if settings.check_manual_thinking:
        manual_thinking_first(request)
    sizes(request)
