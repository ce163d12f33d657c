"""Which text is a command, and what its receipt says."""

import pytest

from app.conversation.messages import text_block
from app.errors import InvalidPayload
from app.turns.commands import MAX_INSTRUCTIONS, compact_command, receipt

IMAGE = {"type": "image", "source": {"type": "url", "url": "https://localhost/a.png"}}


@pytest.mark.parametrize(
    ("text", "instructions"),
    [
        ("/compact", ""),
        ("  /compact \n", ""),
        ("/compact keep the ports", "keep the ports"),
        ("/compact\nkeep\nboth  lines ", "keep\nboth  lines"),
        ("/compact /compact", "/compact"),
    ],
)
def test_a_text_that_is_the_command_as_a_whole(text, instructions):
    assert compact_command((text_block(text),)) == instructions


@pytest.mark.parametrize(
    "text", ["/compacted", "/Compact", "please /compact", "/ compact", "//compact", "compact", "/"]
)
def test_a_text_that_is_none(text):
    assert compact_command((text_block(text),)) is None


def test_a_text_in_pieces_counts_as_a_whole_and_one_with_a_picture_does_not():
    pieces = (text_block("/compact"), text_block("keep"), text_block("the ports"))
    assert compact_command(pieces) == "keep\nthe ports"
    assert compact_command((*pieces, IMAGE)) is None


def test_instructions_have_the_limit_of_the_other_way_to_give_them():
    assert compact_command((text_block(f"/compact {'x' * MAX_INSTRUCTIONS}"),)) == "x" * MAX_INSTRUCTIONS
    with pytest.raises(InvalidPayload, match="content: the instructions of /compact have at most 10000 characters"):
        compact_command((text_block(f"/compact {'x' * (MAX_INSTRUCTIONS + 1)}"),))


def test_a_receipt_gives_the_numbers_or_the_reason():
    numbers = {"outcome": "compacted", "tokens_before": 27912, "tokens_after": 5105, "messages_evicted": 51}
    assert receipt(numbers) == (
        "Compacted the model's view from about 27,912 to 5,105 tokens; 51 messages left it. Your history is as it was."
    )
    assert receipt({"outcome": "not_worth_it"}) == "Nothing was compacted: too little would be freed."
