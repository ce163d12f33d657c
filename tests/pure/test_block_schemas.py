"""The API page's schemas of blocks and thinking take what the checks of the other rooms take, and nothing else."""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.api.block_schemas import COMPONENTS, INPUT_BLOCKS, SYSTEM_BLOCKS, THINKING, TRANSCRIPT_BLOCKS
from app.context.block_fields import KINDS, SHAPES, first_fault
from app.errors import InvalidPayload
from app.sessions.payload import DISPLAYS, MIN_BUDGET, THINKING_KEYS, check_thinking, read_system
from app.turns.acceptance import accept_input

MAX_TOKENS = 10**6
WORDS = ("words", "https://a.b/c", "AAAA", "text/plain", "image/png", "application/pdf", "a-tool_1", "toolu_1")
ODD_VALUES = (
    "", " ", "\t\n", "\u00a0\u2003", "\x1f", "\u200b", "é", "tool\n", "a b", "x" * 129, "ftp://a", "HTTPS://a", "http://",
    "AAA=", "AA==", "AB==", "A===", "AAAA\n", "AAAA AAAA", "AAA", "====", "image/svg+xml", "Image/png",
    None, True, False, 0, 1.5, [], {}, {"enabled": True}, {"enabled": 1}, {"enabled": None}, {"other": True},
    {"type": "direct"}, {"type": "direct", "id": "x"}, [{}], ["words"], [None],
)  # fmt: skip


def made_of(words: tuple[str, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(words)


def unlike(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what is right there."""
    return st.one_of(good, good, good, good, st.sampled_from(ODD_VALUES))


def objects(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """All fields or some, and at times one that does not belong there."""
    kept = {name: unlike(value) for name, value in fields.items()}
    some = st.fixed_dictionaries({"type": st.just(kind)}, optional={**kept, "cache_control": st.just({})})
    whole = st.fixed_dictionaries({"type": st.just(kind), **kept})
    strange = st.dictionaries(st.sampled_from(("index", "id", "text", "Type")), st.just("x"), min_size=1, max_size=1)
    return st.one_of(whole, whole, some, st.tuples(whole, strange).map(lambda pair: {**pair[0], **pair[1]}))


TEXT = objects("text", text=made_of(WORDS), citations=st.sampled_from((None, [], [{"type": "x"}])))
URL = objects("url", url=made_of(("https://a.b/c", "http://a")))
IMAGE = objects(
    "image",
    source=objects("base64", media_type=made_of(("image/png", "image/jpeg")), data=made_of(("AAAA", "AAA="))) | URL,
)
SOURCES = st.one_of(
    objects("base64", media_type=made_of(("application/pdf",)), data=made_of(("AAAA", "AA=="))),
    URL,
    objects("text", media_type=made_of(("text/plain",)), data=made_of(WORDS)),
    objects("content", content=made_of(WORDS) | st.lists(unlike(TEXT | IMAGE), max_size=2)),
)
DOCUMENT = objects(
    "document",
    source=SOURCES,
    title=st.sampled_from((None, "title")),
    context=st.sampled_from((None, "")),
    citations=st.sampled_from((None, {}, {"enabled": True})),
)
BLOCKS = {
    "text": TEXT,
    "image": IMAGE,
    "document": DOCUMENT,
    "tool_use": objects(
        "tool_use",
        id=made_of(WORDS),
        name=made_of(("a-tool_1", "x")),
        input=st.just({}),
        caller=st.just({"type": "direct"}),
    ),
    "tool_result": objects(
        "tool_result",
        tool_use_id=made_of(WORDS),
        content=made_of(WORDS) | st.lists(unlike(TEXT | IMAGE | DOCUMENT), max_size=2),
        is_error=st.booleans(),
    ),
    "thinking": objects("thinking", thinking=made_of(WORDS), signature=made_of(WORDS)),
    "redacted_thinking": objects("redacted_thinking", data=made_of(WORDS)),
}
ANY_BLOCK = unlike(st.one_of(*BLOCKS.values()))
THINKINGS = st.one_of(
    *(
        objects(kind, budget_tokens=st.sampled_from((MIN_BUDGET - 1, MIN_BUDGET, 5000)), display=made_of(DISPLAYS))
        for kind in (*THINKING_KEYS, "other")
    ),
    *(st.fixed_dictionaries({"type": st.just(kind)}) for kind in THINKING_KEYS),
)


def changed(block: Any) -> Iterator[dict[str, Any]]:
    """With every odd value in the place of every field, those of its source too."""
    for name in block if isinstance(block, dict) else ():
        for odd in ODD_VALUES:
            yield {**block, name: odd}
        yield from ({**block, name: inner} for inner in (changed(block[name]) if name == "source" else ()))


def validator_of(schema: dict[str, Any]) -> Any:
    return jsonschema_rs.validator_for({**schema, "components": {"schemas": COMPONENTS}})


def takes(schema: dict[str, Any], value: Any) -> bool:
    return bool(validator_of(schema).is_valid(value))


def passes(check: Any, *arguments: Any) -> bool:
    try:
        check(*arguments)
    except InvalidPayload:
        return False
    return True


def test_every_kind_of_block_is_made_here():
    assert BLOCKS.keys() == KINDS == SHAPES.keys()


@pytest.mark.parametrize("kind", sorted(BLOCKS))
def test_the_schema_of_a_kind_takes_what_its_fields_are_checked_for(kind: str):
    name = "".join(part.title() for part in kind.split("_")) + "Block"

    @given(BLOCKS[kind])
    def agree(block: Any) -> None:
        for like in (block, *changed(block)):
            assert validator.is_valid(like) == (first_fault([like], "content", {kind}) is None), like

    validator = validator_of(COMPONENTS[name])
    agree()


@given(st.lists(ANY_BLOCK, max_size=2))
def test_a_turn_takes_the_blocks_that_its_schema_takes(blocks: list):
    assert takes(INPUT_BLOCKS, blocks) == passes(accept_input, blocks, None, None, {})


@given(st.lists(unlike(TEXT), min_size=1, max_size=2))
def test_a_system_takes_the_blocks_that_its_schema_takes(blocks: list):
    assert takes(SYSTEM_BLOCKS, blocks) == passes(read_system, blocks)


@given(st.lists(ANY_BLOCK, max_size=2))
def test_a_transcript_takes_the_blocks_that_its_schema_takes(blocks: list):
    assert takes(TRANSCRIPT_BLOCKS, blocks) == (first_fault(blocks, "content", KINDS) is None)


@given(unlike(THINKINGS).filter(lambda value: isinstance(value, dict)))
@example({"type": "enabled"})
def test_a_session_takes_the_thinking_that_its_schema_takes(thinking: dict):
    assert takes(THINKING, thinking) == passes(check_thinking, thinking, MAX_TOKENS)
