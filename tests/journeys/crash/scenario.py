"""What a held session does: a turn of two steps, with three calls at once and a compaction; such a turn that waits for
its client and for a person; or a compaction by hand.

The model's answers depend on what it is asked alone, so any call may come again.
"""

from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.double.exchange import Exchange
from tests.double.steps import Reply, call, say, text
from tests.double.transcript import extract
from tests.journeys.asking import ASK, allow, decide, give, question, result
from tests.journeys.house import House
from tests.journeys.long_sessions import lines, prose

Json = dict[str, Any]

WINDOW = 16_384
IMPORTED = prose(10)
WORK, WITH_US, QUEUED, NEXT = "Do the work.", "Do it with us.", "And then?", "What now?"
TOOLS = ("send", "look", "note")
LONG = lines(77, 15_000)
CALLS = [call(f"t{number}", name, {}) for number, name in enumerate(TOOLS)]
# One for the client, one for the server, one that a person must allow.
ASKED = [question("t0"), call("t1", "send", {}), call("t2", "note", {})]
UNKNOWN = "the outcome is unknown"

# Every place of the turn, in the order it comes to them.
TURN = (
    "accept:before", "accept:after", "start:before", "start:in", "start:after",
    "model:before", "model:mid", "model:after", "assistant:before", "assistant:after",
    "started:before", "started:after", "started:after#2", "send:before", "send:after", "look:before", "look:after",
    "note:after", "done:before", "done:after", "done:before#2", "done:after#2", "done:after#3",
    "results:before", "results:after",
    "summary:before", "summary:mid", "summary:after", "append:before", "append:half", "append:after",
    "epoch:before", "epoch:after", "model:before#2", "model:mid#2", "model:after#2",
    "assistant:before#2", "assistant:after#2", "closing:before", "closing:in", "closing:after",
)  # fmt: skip
COMPACTION = (
    "accept:before", "accept:after", "start:before", "start:in", "start:after",
    "summary:before", "summary:mid", "summary:after", "append:before", "append:half", "append:after",
    "epoch:before", "epoch:after", "closing:before", "closing:in", "closing:after",
)  # fmt: skip
# Of a turn that waits; `answer` is that of the client, and then that of the person, with which it goes on.
WAITING = ("waiting:before", "waiting:after", "answer:before", "answer:after", "answer:before#2", "answer:after#2")
# Where it is the database that holds the statement.
WRITING = {"closing:in", "results:in"}
# A second turn waits behind these.
BEHIND = {"send:after", "model:mid", "results:after", "closing:before"}


def answer(exchange: Exchange) -> Reply:
    if exchange.purpose == "summarize":
        return extract(exchange)
    newest = exchange.body["messages"][-1]["content"]
    if any(block["type"] == "tool_result" for block in newest):
        return say("It is done.")
    if any(block.get("text") == WORK for block in newest):
        return Reply((text(LONG), *CALLS))
    if any(block.get("text") == WITH_US for block in newest):
        return Reply((text(LONG), *ASKED))
    return say("Nothing.")


@dataclass(slots=True)
class Held:
    """One session and the point it is held at. `sent`: the request that brings it there."""

    kind: str
    point: str
    session: str = ""
    bodies: list[Json] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.session.rpartition("/")[2]

    @property
    def stop(self) -> str:
        """Where its gate holds it."""
        return self.point.replace(":in", ":before") if self.point in WRITING else self.point

    @property
    def queues(self) -> bool:
        return self.kind == "turn" and self.point in BEHIND

    @property
    def owned(self) -> bool:
        """A run that waits has no owner who could lose it."""
        return self.kind != "waiting" or self.point == "waiting:before"

    @property
    def work(self) -> str:
        return WITH_US if self.kind == "waiting" else WORK

    @property
    def calls(self) -> list[Json]:
        return ASKED if self.kind == "waiting" else CALLS

    async def open(self, house: House) -> None:
        asking = {"tools": [ASK], "approvals": {"tools": {"note": "always"}}} if self.kind == "waiting" else {}
        self.session = await house.open(messages=IMPORTED, context={"context_window_tokens": WINDOW}, **asking)

    async def ask(self, house: House) -> None:
        """All that its client posts, the same each time: a key makes each of them one."""
        answers = [await self.begin(house)]
        if self.kind == "waiting":
            path = f"{self.session}/turns/{answers[0].json()['id']}"
            answers.append(await give(house, path, result("t0"), key="give"))
            answers.append(await decide(house, path, allow("t2"), key="decide"))
        assert [answer.status_code for answer in answers] == [200] * len(answers), [answer.text for answer in answers]

    async def begin(self, house: House) -> httpx.Response:
        if self.kind != "compaction":
            return await house.post(self.session, self.work, wait=True, key="begin", metadata={"hold": self.stop})
        return await house.http.post(
            f"{self.session}/compact", json={"instructions": self.stop}, headers={"Idempotency-Key": "begin"}
        )

    async def queue(self, house: House) -> None:
        assert (await house.post(self.session, QUEUED, queue=True, key="queue")).status_code == 202

    def said(self) -> list[tuple[str, list[str]]]:
        """Role and texts of every row after the imported ones, results left out."""
        work = [("user", [self.work]), ("assistant", [LONG]), ("user", []), ("assistant", ["It is done."])]
        queued = [("user", [QUEUED]), ("assistant", ["Nothing."])]
        following = [("user", [NEXT]), ("assistant", ["Nothing."])]
        return [*(work if self.kind != "compaction" else []), *(queued if self.queues else []), *following]
