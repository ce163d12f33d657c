"""One model call of the agent: the next tool calls, or the answer. What to do is computed anew from the messages."""

from collections.abc import Sequence

from app.conversation.messages import Content, text_block
from app.conversation.request import ModelRequest
from app.providers.offline.digest import shortened
from app.providers.offline.jobs import Job, Placed
from app.providers.offline.language import Language, language_of
from app.providers.offline.lexer import Token, lex
from app.providers.offline.phrases import say
from app.providers.offline.planner import plan
from app.providers.offline.report import lead, remarked, report
from app.providers.offline.standing import Standing, call_id, standing_of
from app.providers.offline.steps import Plan, Reason
from app.providers.offline.stream import BYTES_PER_TOKEN
from app.providers.offline.vocabulary import any_in, words

MOST_QUOTED_BYTES = 9000
_ASKED = words("ask asked asking say said request requested requests question hỏi nói yêu")
_MINE = words("i my me mine tôi mình tớ em")
_FIRST = words("first initially earliest originally đầu")


def respond(request: ModelRequest) -> Content:
    standing = standing_of(request)
    tokens = lex(standing.request)
    language = language_of(tokens)
    found = plan(standing.request, tokens, language, standing.last_path)
    if not found.steps:
        return (text_block(_talk(found, tokens, standing, language)),)
    job = Job(found.steps, standing, frozenset(tool.name for tool in request.tools), language)
    calls = job.next_calls()
    if not calls:
        return (text_block(report(job, found.remarks, _room(request))),)
    begins = () if standing.outcomes else (text_block(lead(found.steps, language)),)
    return (*begins, *(_block(request, each) for each in calls))


def _room(request: ModelRequest) -> int:
    """Bytes for quoted text: what max_tokens allows, less a share for our own sentences."""
    return min(MOST_QUOTED_BYTES, request.max_tokens * BYTES_PER_TOKEN * 3 // 4)


def _block(request: ModelRequest, placed: Placed) -> dict[str, object]:
    identifier = call_id(request, placed.step, placed.part)
    return {"type": "tool_use", "id": identifier, "name": placed.call.name, "input": dict(placed.call.input)}


def _talk(found: Plan, tokens: Sequence[Token], standing: Standing, language: Language) -> str:
    if any_in(tokens, _ASKED) and any_in(tokens, _MINE):
        return _recall(tokens, standing, language)
    if not found.remarks:
        return say(language, "greeting") + say(language, "intro")
    asks_more = any(each.reason in (Reason.UNKNOWN, Reason.CANNOT) for each in found.remarks)
    return "\n\n".join([*remarked(found.remarks, language), *([say(language, "intro")] if asks_more else [])])


def _recall(tokens: Sequence[Token], standing: Standing, language: Language) -> str:
    if not standing.earlier:
        return say(language, "asked_nothing")
    first = any_in(tokens, _FIRST)
    text = standing.earlier[0 if first else -1]
    return say(language, "asked_first" if first else "asked_last", text=f'"{shortened(text, 1000)}"')
