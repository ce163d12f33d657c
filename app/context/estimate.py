"""Token estimates by counting bytes: the default estimator, without tables or network.

Real sessions show Claude at 2.0 to 3.2 bytes of UTF-8 per token, so every byte weighs 0.4: prose, code, Vietnamese
(2 and 3 bytes a letter) and CJK (3 bytes, so 1.2 tokens a character). Digits and punctuation, which JSON is full of,
weigh more. A run of base64 weighs about a token per 1.2 characters. Weights only add up, so more text is never less.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from app.context.image_size import image_size
from app.conversation.messages import Block
from app.conversation.request import ModelRequest, ToolDefinition

# Thousandths of a token per byte.
_BYTE, _DENSE_BYTE, _BASE64_BYTE = 400, 150, 400
_DENSE = b"0123456789!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
_MASK = bytes(120 if byte in _BASE64 else 32 for byte in range(256))
_RUN = b"x" * 128  # words, paths and digests are shorter

# Tokens of framing that no text shows: an allowance, which real usage corrects.
MESSAGE, TOOL_BLOCK, DEFINITION = 4, 12, 16
# An image costs width * height / 750 once its long edge is scaled down to 1,568 pixels, at most about 1,600.
IMAGE, IMAGE_EDGE, PIXELS_PER_TOKEN = 1600, 1568, 750
# A PDF page costs its text and its picture; about 50 kB of file each.
PDF_PAGE, PDF_PAGE_BYTES = 2500, 50_000
# The provider takes 100 pages in a request on a window of 200,000. So many in one file are scans: pictures alone.
PDF_MOST = 100 * IMAGE


class BlockEstimator:
    """Implements `Estimator` over the weight of a text."""

    def __init__(self, tokens: Callable[[str], int]) -> None:
        self.estimate = tokens

    def estimate_request(self, request: ModelRequest) -> int:
        messages = sum(MESSAGE + self._content(message.content) for message in request.messages)
        return self._content(request.system) + messages + sum(map(self._definition, request.tools))

    def _definition(self, tool: ToolDefinition) -> int:
        return DEFINITION + self.estimate(tool.name) + self.estimate(tool.description) + self._json(tool.input_schema)

    def _content(self, content: Iterable[Block]) -> int:
        return sum(map(self._block, content))

    def _block(self, block: Block) -> int:
        match block:
            case {"type": "text", "text": str(text)} | {"type": "thinking", "thinking": str(text)}:
                return 1 + self.estimate(text)
            case {"type": "tool_use", "name": str(name)}:
                return TOOL_BLOCK + self.estimate(name) + self._json(block.get("input"))
            case {"type": "tool_result"}:
                return TOOL_BLOCK + self._result(block.get("content"))
            case {"type": "image" | "document", "source": Mapping() as source}:
                return 1 + self._media(block["type"], source)
        return 1 + self._json(block)

    def _result(self, content: object) -> int:
        return self._content(content) if isinstance(content, list) else self.estimate(str(content or ""))

    def _json(self, value: object) -> int:
        return self.estimate(json.dumps(value, ensure_ascii=False))

    def _media(self, kind: str, source: Mapping[str, Any]) -> int:
        match source:
            case {"type": "text", "data": str(text)}:
                return self.estimate(text)
            case {"type": "content", "content": content}:
                return self._result(content)
            case {"type": "base64", "data": str(data)}:
                return _image(data) if kind == "image" else _pdf(data)
        return IMAGE if kind == "image" else PDF_PAGE


class HeuristicEstimator(BlockEstimator):
    """The default. Linear in the text, and never a loop over characters."""

    def __init__(self) -> None:
        super().__init__(_tokens)


def _tokens(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    dense = len(data) - len(data.translate(None, _DENSE))
    return (_BYTE * len(data) + _DENSE_BYTE * dense + _BASE64_BYTE * _in_runs(data) + 999) // 1000


def _in_runs(data: bytes) -> int:
    """Bytes that lie in long unbroken runs of base64 characters."""
    if len(data) < len(_RUN):
        return 0
    mask = data.translate(_MASK)
    total, start = 0, mask.find(_RUN)
    while start >= 0:
        end = mask.find(b" ", start)
        end = len(mask) if end < 0 else end
        total += end - start
        start = mask.find(_RUN, end)
    return total


def _pdf(data: str) -> int:
    return min(PDF_MOST, PDF_PAGE * (1 + len(data) * 3 // 4 // PDF_PAGE_BYTES))


def _image(data: str) -> int:
    size = image_size(data)
    if size is None:
        return IMAGE
    scale = min(1.0, IMAGE_EDGE / max(*size, 1))
    return min(IMAGE, 1 + int(size[0] * size[1] * scale * scale / PIXELS_PER_TOKEN))
