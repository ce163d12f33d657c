import base64
import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.estimate import HeuristicEstimator
from app.conversation.messages import Block, Message, text_block
from app.conversation.request import ModelRequest, ToolDefinition
from tests.pure.context.histories import answer, assistant, call_block, messages, user

ESTIMATOR = HeuristicEstimator()
EMPTY = ModelRequest("m", 1, "ses_1")

ENGLISH = "The build failed because the parser could not read the second line of the settings file. " * 20
VIETNAMESE = "Tôi đã đọc toàn bộ tệp cấu hình và thấy rằng dòng thứ hai bị thiếu dấu ngoặc kép. " * 20
CHINESE = "构建失败了，因为解析器无法读取设置文件的第二行，请检查引号是否完整。" * 20
JSON = json.dumps(
    [{"id": n, "path": f"/workspace/src/file_{n}.py", "ok": n % 2 == 0, "ms": n * 1.5} for n in range(40)]
)
BASE64 = base64.b64encode(random.Random(7).randbytes(90_000)).decode()

pieces = st.one_of(
    st.text(max_size=80), st.sampled_from((ENGLISH, JSON, CHINESE, "A" * 127, "A" * 128, BASE64[:300], "\ud800"))
)


def tokens(*content: Block | str) -> int:
    return ESTIMATOR.estimate_request(replace(EMPTY, messages=(user(*content),)))


@given(pieces, pieces)
def test_more_text_is_never_fewer_tokens(first: str, second: str):
    whole = ESTIMATOR.estimate(first + second)
    assert whole >= ESTIMATOR.estimate(first)
    assert whole >= ESTIMATOR.estimate(second)


@pytest.mark.parametrize("text", [ENGLISH, VIETNAMESE, JSON])
def test_prose_and_json_stay_near_the_measured_bytes_per_token(text: str):
    assert 0.7 <= ESTIMATOR.estimate(text) / (len(text.encode()) / 2.5) <= 1.6


def test_json_is_denser_than_prose_and_base64_denser_still():
    english, dense, data = (len(text) / ESTIMATOR.estimate(text) for text in (ENGLISH, JSON, BASE64))
    assert english > 1.05 * dense > 1.5 * data


def test_chinese_is_weighed_by_character():
    assert 1.0 <= ESTIMATOR.estimate(CHINESE) / len(CHINESE) <= 1.3


def test_a_data_url_in_text_weighs_a_token_per_1_2_characters():
    url = f"see data:image/png;base64,{BASE64} above"
    assert len(url) / ESTIMATOR.estimate(url) == pytest.approx(1.2, rel=0.05)


@given(messages(), messages(max_size=3))
def test_more_messages_blocks_system_or_tools_are_more_tokens(before: list[Message], more: list[Message]):
    request = replace(EMPTY, messages=tuple(before))
    base = ESTIMATOR.estimate_request(request)
    tool = ToolDefinition("read_file", "Reads a file.", {"type": "object", "properties": {}})
    longer = [Message(m.role, (*m.content, text_block(""))) for m in before]
    assert ESTIMATOR.estimate_request(replace(request, messages=(*before, *more))) >= base + len(more)
    assert ESTIMATOR.estimate_request(replace(request, messages=tuple(longer))) >= base + len(longer)
    assert ESTIMATOR.estimate_request(replace(request, system=(text_block("s"),))) > base
    assert ESTIMATOR.estimate_request(replace(request, tools=(tool,))) > base


def test_arguments_and_results_count_as_their_text():
    write = {**call_block("t1", "write_file"), "input": {"content": ENGLISH}}
    asked = ESTIMATOR.estimate_request(replace(EMPTY, messages=(assistant(write),)))
    assert asked >= ESTIMATOR.estimate(ENGLISH)
    assert tokens(answer("t1", ENGLISH)) >= ESTIMATOR.estimate(ENGLISH)
    assert tokens(answer("t1", [text_block(ENGLISH)])) >= ESTIMATOR.estimate(ENGLISH)


def image(data: bytes) -> Block:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


def png(width: int, height: int) -> bytes:
    head = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return head + bytes(3_000_000)


def test_an_image_costs_by_its_size_and_never_as_text():
    assert tokens(image(png(750, 100))) == pytest.approx(100, abs=10)
    assert tokens(image(png(8000, 6000))) == pytest.approx(1600, abs=10)
    assert tokens(image(png(8000, 200))) == pytest.approx(82, abs=10)
    assert tokens(image(bytes(3_000_000))) == pytest.approx(1600, abs=10)
    assert tokens({"type": "image", "source": {"type": "url", "url": "https://example.test/a"}}) < 1700


def pdf(size: int) -> Block:
    data = base64.b64encode(bytes(size)).decode()
    return {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}}


def test_a_pdf_costs_by_its_size_and_a_scan_no_more_than_a_hundred_pictures():
    assert 2_500 < tokens(pdf(500_000)) < 50_000
    sizes = [tokens(pdf(size)) for size in (1, 500_000, 3_100_000, 3_200_000, 8_000_000, 20_000_000)]
    assert sizes == sorted(sizes)
    assert 150_000 < sizes[2] < sizes[-1] < 160_100
    assert tokens({"type": "document", "source": {"type": "text", "data": ENGLISH}}) >= ESTIMATOR.estimate(ENGLISH)
