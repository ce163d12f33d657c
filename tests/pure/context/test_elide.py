import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.context.elide import (
    plan_all_media,
    plan_arguments,
    plan_fit,
    plan_media,
    plan_micro,
    plan_micro_down_to,
    plan_offload,
)
from app.context.estimate import HeuristicEstimator
from app.context.shape import shape_rows
from app.conversation.messages import Block, Message, StoredMessage
from app.conversation.records import Shaping, Tier
from tests.pure.context.histories import answer, assistant, call_block, row, rows_of, user
from tests.pure.context.sessions import IMAGE, long_turn, sessions

PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}
DATA_URL = "data:image/png;base64," + "iVBORw0KGgo" * 90_000
estimate = HeuristicEstimator().estimate


def quarter(text: str) -> int:
    return len(text) // 4


def shown(rows: list[StoredMessage], *shapings: Shaping | None) -> list[StoredMessage]:
    return shape_rows(rows, [shaping for shaping in shapings if shaping], "ses_1")


def changed(rows: list[StoredMessage], shaping: Shaping | None) -> list[tuple[int, int]]:
    """Addresses of the blocks that a plan shortens."""
    pairs = zip(rows, shown(rows, shaping), strict=True)
    return [(r.seq, i) for r, new in pairs for i, block in enumerate(r.content) if new.content[i] is not block]


def call(call_id: str, **arguments: object) -> Block:
    return {"type": "tool_use", "id": call_id, "name": "write_file", "input": arguments}


def batch(*bodies: str | list[Block]) -> list[Message]:
    """A request and one batch; call n has body n."""
    ids = [f"t{n}" for n in range(len(bodies))]
    results = [answer(one, body) for one, body in zip(ids, bodies, strict=True)]
    return [user("go"), assistant(*map(call_block, ids)), user(*results)]


def test_one_span_clears_all_results_older_than_the_tail():  # case 23
    rows = long_turn(40)
    shaping = plan_micro(rows, 73, "rec_1")
    assert shaping == Shaping("rec_1", Tier.MICRO_COMPACTION, 1, 120, spans=((3, 71),))
    assert changed(rows, shaping) == [(seq, 0) for seq in range(3, 73, 2)]
    assert plan_micro(shown(rows, shaping), 73, "rec_2") is None


def test_the_newest_three_batches_and_unseen_results_are_exempt():
    rows = long_turn(10)
    assert plan_micro(rows, 1_000, "rec").spans == ((3, 15),)
    assert plan_micro(long_turn(3), 1_000, "rec") is None
    assert plan_micro(rows, 1, "rec") is None


def test_a_batch_counts_whole_however_its_results_are_split():
    split = [*batch("x" * 500, "x" * 500)[:2], user(answer("t0", "x" * 500)), user(answer("t1", "x" * 500))]
    rows = [*rows_of(split), *(row(r.seq + 3, r.role, r.content) for r in long_turn(3)[1:])]
    assert plan_micro(rows, 1_000, "rec").spans == ((3, 4),)


@pytest.mark.parametrize(("length", "is_error", "taken"), [(120, False, False), (121, False, True), (121, True, True)])
def test_long_bodies_are_cleared_errors_too(length: int, is_error: bool, taken: bool):
    first = [user("go"), assistant(call_block("a")), user(answer("a", "x" * length, is_error))]
    rows = [*rows_of(first), *(row(r.seq + 2, r.role, r.content) for r in long_turn(3)[1:])]
    assert (plan_micro(rows, 1_000, "rec") is not None) is taken


@given(sessions(), st.integers(1, 40))
def test_elision_keeps_every_block_in_its_place(rows: list[StoredMessage], below: int):
    plans = (plan_micro(rows, below, "a"), plan_media(rows, True, "b"), plan_arguments(rows, below, 5, "c"))
    kinds = [[block["type"] for block in r.content if block["type"] != "image"] for r in rows]
    after = shown(rows, *plans)
    assert [len(r.content) for r in after] == [len(r.content) for r in rows]
    assert all(now.count("tool_result") == old.count("tool_result") for now, old in zip(kinds, kinds, strict=True))
    assert all(new is old for new, old in zip(after, rows, strict=True) if old.seq >= below and "image" not in str(old))


@pytest.mark.parametrize(("to_free", "span"), [(1, (3, 3)), (900, (3, 3)), (901, (3, 5)), (2_500, (3, 7))])
def test_early_elision_takes_the_oldest_until_enough_is_freed(to_free: int, span: tuple[int, int]):
    rows = long_turn(20, "x" * 4_000)  # 1,000 tokens each, 100 for the marker
    assert plan_micro_down_to(rows, 1_000, to_free, quarter, "rec").spans == (span,)


def test_early_elision_takes_what_there_is():
    rows = long_turn(20, "x" * 4_000)
    assert plan_micro_down_to(rows, 21, 10**9, quarter, "rec") == plan_micro(rows, 21, "rec")
    assert plan_micro_down_to(long_turn(2), 21, 10**9, quarter, "rec") is None


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        ({"text": "x" * 1_250}, False),
        ({"text": "x" * 1_251}, True),
        ({"text": "漢" * 417}, True),
        ({"edits": [{"deep": {"new": "x" * 2_000}}]}, True),
        ({"x" * 2_000: "short", "n": 7, "flag": True, "none": None}, False),
        ({"many": ["x" * 1_000] * 50}, False),
    ],
)
def test_string_arguments_over_the_limit_are_shortened_at_any_depth(arguments: dict[str, object], taken: bool):
    rows = rows_of([user("go"), assistant("so", call("t1", **arguments)), user(answer("t1"))])
    shaping = plan_arguments(rows, 3, 1_250, "rec")
    assert changed(rows, shaping) == ([(2, 1)] if taken else [])
    assert plan_arguments(rows, 2, 1_250, "rec") is None
    assert plan_arguments(shown(rows, shaping), 3, 1_250, "rec") is None


def test_arguments_nested_deeper_than_the_stack_are_searched():
    deep: object = "x" * 2_000
    for _ in range(5_000):
        deep = [deep]
    assert plan_arguments(rows_of([user("go"), assistant(call("t1", a=deep))]), 9, 1_250, "rec") is not None


def test_a_large_result_at_the_end_is_previewed_at_birth():  # case 9
    talk = [user("a"), assistant("b")] * 14
    rows = rows_of([*talk, *batch("line\n" * 16_000)])
    shaping = plan_offload(rows, 5_000, 1_000, estimate, "rec")
    assert shaping == Shaping("rec", Tier.RESULT_OFFLOAD, 1, 2_000, blocks=((31, 0),))
    [small] = shown(rows, shaping)[-1].content
    assert estimate(small["content"]) < 0.25 * 20_000
    assert plan_offload(shown(rows, shaping), 5_000, 1_000, estimate, "again") is None


@pytest.mark.parametrize(
    ("lengths", "window", "taken"),
    [
        ([200_000], 10**6, []),
        ([200_001], 10**6, [0]),
        ([150_000, 60_000, 20_000], 10**6, [0]),
        ([90_000, 95_000, 100_000], 10**6, [2]),
        ([150_000, 140_000, 150_000], 10**6, [0, 2]),
        ([29_000] * 8, 10**6, []),
        ([40_000, 2_000, 2_001], 40_000, [0]),
        ([5_000] * 10, 40_000, []),
        ([10_000] * 5, 40_000, [3, 4]),
        ([1_900] * 12, 4_096, []),
        ([3_000, 2_500, 1_900], 4_096, [0, 1]),
    ],
)
def test_the_largest_results_of_a_batch_go_until_it_is_small_enough(lengths: list[int], window: int, taken: list[int]):
    rows = rows_of(batch(*("x" * length for length in lengths)))
    shaping = plan_offload(rows, window * 0.25, window * 0.05, quarter, "rec")
    assert [index for _, index in (shaping.blocks if shaping else ())] == taken


def test_only_results_that_were_never_sent_are_offloaded_at_birth():
    rows = rows_of([*batch("x" * 300_000), assistant("seen")])
    assert plan_offload(rows, 50_000, 10_000, estimate, "rec") is None
    assert plan_offload(rows[:-1], 50_000, 10_000, estimate, "rec") is not None
    assert plan_offload([], 50_000, 10_000, estimate, "rec") is None


def test_media_do_not_count_as_text_but_a_data_url_does():  # case 28
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4_000_000}}
    assert plan_offload(rows_of(batch([image])), 50_000, 10_000, estimate, "rec") is None
    url = plan_offload(rows_of(batch([{"type": "text", "text": DATA_URL}, image])), 50_000, 10_000, estimate, "rec")
    assert url is not None


@pytest.mark.parametrize(
    ("over", "taken"),
    [
        (0, []),
        (1, [(6, 1)]),
        (19_400, [(6, 1)]),
        (19_401, [(6, 1), (5, 0)]),
        (35_000, [(6, 1), (5, 0), (6, 0)]),
        (40_000, [(6, 1), (5, 0), (6, 0), (1, 0)]),
        (10**6, [(6, 1), (5, 0), (6, 0), (1, 0)]),
    ],
)
def test_fit_previews_the_newest_batch_then_large_user_texts(over: int, taken: list[tuple[int, int]]):
    older = [assistant(call_block("t0")), user(answer("t0", "x" * 90_000))]
    newest = [
        assistant(call("t1", text="x" * 60_000), call("t2", text="short")),
        user(answer("t1", "x" * 8_000), answer("t2", "x" * 80_000), "a word"),
    ]
    rows = rows_of([user("x" * 120_000), *older, user("y" * 20_000), *newest])
    shaping = plan_fit(rows, over, 100_000, quarter, "rec")
    assert (shaping.blocks if shaping else ()) == tuple(sorted(taken))
    assert changed(rows, shaping) == sorted(taken)


def test_fit_leaves_a_request_that_no_one_has_read_and_what_is_previewed_already():
    unread = rows_of([*batch("ok"), assistant("done"), user("x" * 90_000)])
    assert plan_fit(unread, 10**6, 40_000, quarter, "rec") is None
    rows = rows_of([user("x" * 90_000), *batch("x" * 9_000)[1:]])
    assert plan_fit(shown(rows, plan_fit(rows, 10**6, 40_000, quarter, "rec")), 10**6, 40_000, quarter, "rec") is None


def test_fit_weighs_a_request_in_pieces_as_one():
    rows = rows_of([user(*["x" * 10_000] * 6), *batch("ok")[1:]])
    assert len(plan_fit(rows, 10**6, 40_000, quarter, "rec").blocks) == 6
    assert plan_fit(rows, 10**6, 100_000, quarter, "rec") is None


MEDIA = [
    user("look", IMAGE, PDF),
    assistant(call_block("t1")),
    user(answer("t1", [IMAGE])),
    assistant("fine"),
    user("and this", IMAGE),
    assistant(call_block("t2")),
    user(answer("t2", [{"type": "text", "text": "shot"}, PDF])),
]


@pytest.mark.parametrize(
    ("end", "older_turns", "older_messages", "everything"),
    [
        (7, (1, 3), (1, 5), (1, 7)),
        (6, (1, 3), (1, 5), (1, 5)),
        (5, (1, 3), (1, 3), (1, 5)),
        (3, None, (1, 1), (1, 3)),
        (1, None, None, (1, 1)),
    ],
)  # case 28
def test_media_go_by_turn_then_by_message_then_all(end: int, older_turns, older_messages, everything):
    rows = rows_of(MEDIA[:end])
    plans = (plan_media(rows, False, "a"), plan_media(rows, True, "b"), plan_all_media(rows, "c"))
    assert [plan.spans[0] if plan else None for plan in plans] == [older_turns, older_messages, everything]
    assert "image" not in {block["type"] for r in shown(rows, plans[2]) for block in r.content}


def test_of_a_run_of_user_rows_only_the_newest_keeps_its_media():
    rows = rows_of([user("one", IMAGE), user("two", IMAGE), user("three", IMAGE)])
    assert plan_media(rows, True, "b").spans == ((1, 2),)


def test_without_media_nothing_is_shed():
    rows = long_turn(3)
    assert (plan_media(rows, False, "a"), plan_media(rows, True, "b"), plan_all_media(rows, "c")) == (None,) * 3
