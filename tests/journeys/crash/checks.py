"""What must be true of a session after a crash, whatever point it came at."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from app.context.archive import read_tail
from app.context.rules import violation
from app.conversation.messages import Message
from tests.double.exchange import Exchange
from tests.journeys.asking import ASK
from tests.journeys.crash.scenario import IMPORTED, UNKNOWN, Held
from tests.journeys.house import House
from tests.journeys.long_sessions import database, told
from tests.journeys.sse import TERMINAL, Frame

Json = dict[str, Any]

_STORED = """
    select
        array(select row_to_json(m)::text from messages m where session_id = $1 order by seq) as messages,
        array(select row_to_json(e)::text from events e where session_id = $1 order by seq) as events,
        array(select tool_use_id || ' ' || state from tool_calls where session_id = $1 order by index) as calls,
        (select generation from session_heads where session_id = $1) as generation
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows of a session, each as the database shows it. `generation`: how often its runs were taken."""

    messages: list[str]
    events: list[str]
    calls: dict[str, str]
    generation: int

    def begins(self, later: "Stored") -> bool:
        """Nothing of it was changed or taken away since."""
        return later.messages[: len(self.messages)] == self.messages and later.events[: len(self.events)] == self.events


async def stored(database_url: str, sessions: list[str]) -> dict[str, Stored]:
    async with database(database_url) as connection:
        rows = {session: await connection.fetchrow(_STORED, session) for session in sessions}
    return {
        session: Stored(row["messages"], row["events"], dict(c.split() for c in row["calls"]), row["generation"])
        for session, row in rows.items()
    }


@dataclass(frozen=True, slots=True)
class After:
    """What a client and the files tell at the end. `before`: the rows as the crash left them. `promised`: whether the
    offload file could be written at once."""

    held: Held
    before: Stored
    promised: bool
    rows: list[Json]
    log: list[Json]
    runs: list[Json]
    usage: Json
    gauge: Json
    records: list[Json]
    offload: bytes
    traces: Counter[str]
    calls: list[Exchange]

    @property
    def new(self) -> list[Json]:
        return self.rows[len(IMPORTED) :]


async def look(
    house: House, held: Held, before: Stored, promised: bool, traces: list[str], calls: list[Exchange]
) -> After:
    session = held.session
    offload = await house.http.get(f"{session}/files/conversation_history/{held.id}.md")
    return After(
        held,
        before,
        promised,
        await house.messages(session),
        await house.events(session),
        (await house.get(f"{session}/turns"))["data"],
        (await house.get(f"{session}/usage"))["by_purpose"],
        await house.get(f"{session}/context"),
        (await house.get(f"{session}/context/records"))["data"],
        offload.content if offload.status_code == 200 else b"",
        Counter(trace.partition("/")[2] for trace in traces if trace.startswith(f"{held.id}/")),
        [call for call in calls if call.user_id == held.id],
    )


def check(after: After, frames: list[Frame]) -> None:
    check_transcript(after)
    check_numbers(after, frames)
    if after.held.kind != "compaction":
        check_tools(after)
    check_compaction(after)
    check_usage(after)
    check_requests(after)


def check_requests(after: After) -> None:
    """None was refused, and one that had to be made again was the same to the byte: its record was not made again."""
    assert not [call.error for call in after.calls if call.broke_rule]
    bodies = {json.dumps(call.body) for call in after.calls if call.purpose == "main"}
    assert len(bodies) == sum(row["role"] == "assistant" for row in after.new)


def check_transcript(after: After) -> None:
    """Every message once, in order, as the provider would take it."""
    said = [(row["role"], [block["text"] for block in row["content"] if block["type"] == "text"]) for row in after.new]
    assert said == after.held.said()
    transcript = [Message(row["role"], tuple(row["content"])) for row in after.rows]
    assert violation(transcript, continues=True) is None


def check_numbers(after: After, frames: list[Frame]) -> None:
    assert [event["seq"] for event in after.log] == list(range(1, len(after.log) + 1))
    assert [row["seq"] for row in after.rows] == list(range(1, len(after.rows) + 1))
    assert [frame.data for frame in frames] == after.log
    ends = Counter(event["run_id"] for event in after.log if event["type"] in TERMINAL)
    assert ends == Counter(run["id"] for run in after.runs)
    assert {run["status"] for run in after.runs} == {"completed"}
    assert [run["turn"] for run in after.runs] == list(range(1, len(after.runs) + 1))


def check_tools(after: After) -> None:
    """One result per call, in call order; one effect, unless the tool is safe or its outcome is told as unknown. What
    the client answers has none here."""
    asked = after.held.calls
    [results] = [row["content"] for row in after.new if row["content"][0]["type"] == "tool_result"]
    assert [result["tool_use_id"] for result in results] == [call["id"] for call in asked]
    completed = Counter(data["tool_use_id"] for data in told(after.log, "tool.completed"))
    assert completed == Counter(call["id"] for call in asked)
    for name, result in zip([call["name"] for call in asked], results, strict=True):
        effects = after.traces[result["tool_use_id"]]
        if name == ASK["name"]:
            assert (result["content"], effects) == ("Blue.", 0)
            continue
        state = after.before.calls.get(result["tool_use_id"], "pending")
        lost = state == "started" and name != "look"
        assert (UNKNOWN in result["content"]) == lost, (name, state)
        assert result.get("is_error", False) == lost
        assert lost or result["content"] == f"{name} is done"
        assert effects <= 1 or name == "look"
        assert effects >= 1 or lost
        assert effects == 1 or state != "done"


def check_compaction(after: After) -> None:
    """Once, and the file holds each evicted row once. By hand none is made without the file."""
    if after.held.kind == "compaction" and not after.promised:
        assert {"tier": "summarization", "reason": "offload_failed"} in told(after.log, "context.declined")
        return
    [compacted] = told(after.log, "context.compacted")
    [record] = [record for record in after.records if record["tier"] == "summarization"]
    assert compacted["record_id"] == record["id"]
    assert (record["path"] is not None) == after.promised
    assert (after.gauge["compactions"], after.gauge["epochs"]) == (1, 1)
    if not after.offload:
        # Only where the rows could not be read while it was to be written; half a section is mended.
        assert not after.promised
        assert after.held.point != "append:half"
        return
    tail = read_tail(after.offload)
    assert not tail.rest
    assert b"torn" not in after.offload
    firsts = [1, *(section.last_seq + 1 for section in tail.sections)]
    assert [section.first_seq for section in tail.sections] == firsts[:-1]
    assert tail.archived_to == record["kept_from_seq"] - 1


def check_usage(after: After) -> None:
    """The sum of what was stored, and the double has answered each of them so."""
    answers = [row["usage"] for row in after.new if row["role"] == "assistant"]
    summaries = [record["usage"] for record in after.records if record["tier"] == "summarization"]
    for purpose, parts in (("main", answers), ("summarize", summaries)):
        assert after.usage.get(purpose) == ({name: sum(p[name] for p in parts) for name in parts[0]} if parts else None)
    outputs = {call.usage["output_tokens"] for call in after.calls if call.usage and call.finished}
    assert {answer["output"] for answer in answers} <= outputs
    newest = answers[-1]
    assert after.gauge["last_input_tokens"] == newest["input"] + newest["cache_read"] + newest["cache_write"]
