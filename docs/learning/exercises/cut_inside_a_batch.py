"""A history whose naive boundary falls inside a batch, and what the cut rules make of it.

From the repository's root: `.venv/bin/python docs/learning/exercises/cut_inside_a_batch.py`
"""
# ruff: noqa: T201

from collections.abc import Sequence
from datetime import UTC, datetime

from app.context.cuts import choose_cut, legal_cuts
from app.context.rules import violation
from app.conversation.messages import Block, Message, StoredMessage, result_block, text_block

PER_ROW = 100  # tokens; the same for every row, so that the sums are easy to follow


def call(call_id: str) -> Block:
    return {"type": "tool_use", "id": call_id, "name": "read_file", "input": {"path": "/workspace/a.md"}}


def history() -> list[StoredMessage]:
    """Seven questions with answers, then a question, a batch of two calls, its results, the answer."""
    talk = [Message(role, (text_block(f"{role} {n}"),)) for n in range(7) for role in ("user", "assistant")]
    batch = [
        Message("user", (text_block("compare the two files"),)),
        Message("assistant", (call("t1"), call("t2"))),
        Message("user", (result_block("t1", "one", False), result_block("t2", "two", False))),
        Message("assistant", (text_block("They differ in one line."),)),
    ]
    return [stored(seq, message) for seq, message in enumerate([*talk, *batch], 1)]


def stored(seq: int, message: Message) -> StoredMessage:
    born = datetime(2026, 1, 1, tzinfo=UTC)
    return StoredMessage(f"msg_{seq}", seq, None, message.role, message.content, None, None, True, True, born)


def naive_start(rows: Sequence[StoredMessage], keep: int) -> int:
    """Seq of the first row that is kept when nobody looks at batches."""
    return rows[-(keep // PER_ROW)].seq


def kept(rows: Sequence[StoredMessage], start: int) -> list[Message]:
    """The kept part as it would be sent with the next question."""
    tail = [Message(row.role, row.content) for row in rows if row.seq >= start]
    return [*tail, Message("user", (text_block("go on"),))]


def verdict(rows: Sequence[StoredMessage], start: int) -> str:
    """Behind a view head the first kept message may be of either role, hence `head`."""
    head = Message("user", (text_block("a summary of what came before"),))
    broken = violation([head, *kept(rows, start)], head=True)
    return "legal" if broken is None else f"refused: message {broken.message}: {broken.rule}"


def main() -> None:
    rows = history()
    sizes = {row.seq: PER_ROW for row in rows}
    print("legal cuts:", legal_cuts(rows))
    for keep in (100, 200, 300, 400):
        naive, cut = naive_start(rows, keep), choose_cut(rows, sizes, keep, floor=1)
        print(f"\nkeep {keep} tokens")
        print(f"  naive boundary {naive}: {verdict(rows, naive)}")
        print(f"  chosen cut     {cut}: {'nothing to evict' if cut is None else verdict(rows, cut)}")
    waiting = [*rows[:-2], stored(17, Message("user", (text_block("are you still there?"),)))]
    print("\nwith both calls still waiting, legal cuts:", legal_cuts(waiting))


if __name__ == "__main__":
    main()
