"""The provider that needs no network."""

import asyncio
import json
from collections.abc import AsyncGenerator

from app.conversation.messages import Content, text_block
from app.conversation.reply import StreamItem, UsageSeen
from app.conversation.request import ModelRequest
from app.conversation.usage import Purpose, Usage
from app.ports import Capabilities
from app.providers.offline.agent import respond
from app.providers.offline.notes import note_down
from app.providers.offline.pairs import shorten_pairs
from app.providers.offline.stream import stream_items, tokens_of
from app.providers.offline.summary import summarize

_HEADING = "# Conversation summary"


class OfflineProvider:
    """Implements `Provider`: the same request always gets the same answer. Usage is an estimate, UTF-8 bytes / 3."""

    name = "offline"
    capabilities = Capabilities()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        input_tokens = _input_tokens(request)
        yield UsageSeen(Usage(input=input_tokens, calls=1))
        # A request of the whole window takes half a second to read; other sessions go on meanwhile.
        content = await asyncio.to_thread(_answer, request)
        for item in stream_items(content, input_tokens, request.max_tokens):
            yield item
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Nothing is open."""


def _answer(request: ModelRequest) -> Content:
    if request.purpose is Purpose.PAIR_SUMMARY:
        return (text_block(shorten_pairs(request)),)
    if request.purpose is Purpose.MEMORY:
        return (text_block(note_down(request)),)
    return (text_block(summarize(request)),) if _asks_for_summary(request) else respond(request)


def _asks_for_summary(request: ModelRequest) -> bool:
    """A call for another purpose than the turn, or one without tools whose prompt names the summary's heading."""
    if request.purpose is not Purpose.MAIN:
        return True
    texts = [block.get("text", "") for content in (request.system, *_contents(request)) for block in content]
    return not request.tools and any(_HEADING in text for text in texts)


def _contents(request: ModelRequest) -> list[Content]:
    return [message.content for message in request.messages[-1:]]


def _input_tokens(request: ModelRequest) -> int:
    tools = [[tool.name, tool.description, tool.input_schema] for tool in request.tools]
    messages = [[message.role, message.content] for message in request.messages]
    text = json.dumps([request.system, tools, messages], ensure_ascii=False)
    return tokens_of(len(text.encode("utf-8", "surrogatepass")))
