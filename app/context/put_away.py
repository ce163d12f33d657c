"""What the view does not show whole, by the path where all of it can be read."""

from collections.abc import Sequence

from app.context.markers import arguments_path, result_path, user_path
from app.context.places import Places, call_places
from app.context.shape import shape_contents
from app.conversation.messages import StoredMessage, tool_uses
from app.conversation.records import Ledger, Record


def put_away(ledger: Ledger, rows: Sequence[StoredMessage], session_id: str) -> dict[str, tuple[Record, ...]]:
    """The records in force that put something away, by path. `rows` and `ledger` are those of the view."""
    found: dict[str, tuple[Record, ...]] = {}
    for record in dict.fromkeys((*ledger.folds, ledger.summary, ledger.cut)):
        if record is not None and record.path is not None:
            found[record.path] = (*found.get(record.path, ()), record)
    shapings = {record.id: record for record in ledger.shapings}
    shaped = shape_contents(rows, ledger.shapings, session_id)
    places = call_places(rows)
    for row in rows:
        if row.seq in shaped:
            for index, ids in shaped[row.seq].by.items():
                found[_path(row, index, places)] = tuple(shapings[record_id] for record_id in ids)
    return found


def _path(row: StoredMessage, index: int, places: Places) -> str:
    """Of a block that is shown shortened."""
    match row.content[index]["type"]:
        case "tool_use":
            return arguments_path(row.seq, len(tool_uses(row.content[:index])))
        case "tool_result":
            return result_path(*places[row.seq, index])
    return user_path(row.seq, index)
