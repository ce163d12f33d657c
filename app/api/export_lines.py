"""Exports as JSON lines: written line by line, and read back. The first line names the format, the last one says that
nothing is missing."""

import base64
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, AwareDatetime, Field, ValidationError

from app.api.render import message_json, session_json
from app.api.schemas import MAX_BLOCKS, Payload, SessionCreate, Whole
from app.context.transplant_json import ledger_json
from app.conversation.media import base64_pieces
from app.conversation.messages import StoredMessage
from app.conversation.session import Idempotency, Session
from app.conversation.usage import Usage
from app.conversation.virtual_path import Area, parse_path
from app.errors import ExportInvalid, PathRefused
from app.sessions.exporting import End, File, Part, Records
from app.sessions.importing import Brought
from app.sessions.opening import Opening

VERSION = 1
Line = dict[str, Any]
# Headers, and what may follow the `?` of an address, are secrets: who brings the export back adds them.
_SERVER = ("name", "url", "allowed_tools")
Model = TypeVar("Model", bound=Payload)
Count = Annotated[Whole, Field(ge=0, le=2**31 - 1)]
# What every store can hold, in every time zone.
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
Moment = Annotated[
    AwareDatetime, Field(strict=False, ge=_FIRST, lt=_LAST), AfterValidator(lambda at: at.astimezone(UTC))
]


def line_of(part: Part) -> Line:
    match part:
        case Session():
            return {"type": "session", "version": VERSION, "session": _session(part)}
        case StoredMessage():
            return {"type": "message", **message_json(part)}
        case Records():
            return {"type": "records", "ledger": ledger_json(part.ledger, part.sections)}
        case File():
            return {"type": "file", "path": part.path, **_content(part.data)}
        case End():
            return {"type": "end", "messages": part.messages, "files": part.files}


def _session(session: Session) -> Line:
    settings, shown = session.settings, session_json(session)
    servers = [{name: server[name] for name in _SERVER} for server in shown["settings"]["mcp_servers"]]
    offered = {"tools": settings.tools, "approvals": settings.approvals, "mcp_servers": servers}
    tools = {name: value for name, value in offered.items() if value}
    chosen = {"max_tokens": settings.max_tokens, "thinking": settings.thinking, "context": settings.context}
    kept = {name: shown[name] for name in ("id", "title", "model", "metadata", "created_at")}
    return {**kept, "system": shown["system"] or None, **chosen, **tools}


def _content(data: bytes) -> Line:
    """A text with a NUL would come back cleaned."""
    if b"\0" not in data:
        try:
            return {"text": data.decode()}
        except UnicodeDecodeError:
            pass
    return {"base64": base64.b64encode(data).decode()}


class _Exported(SessionCreate):
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    title: Annotated[str, Field(max_length=500)] | None = None
    created_at: Moment
    messages: None = None


class SessionLine(Payload):
    type: Literal["session"]
    version: Literal[1]
    session: _Exported


class _UsageFigures(Payload):
    input: Count
    cache_read: Count
    cache_write: Count
    output: Count
    calls: Count


class MessageLine(Payload):
    """`id` and `run_id` are of the other session."""

    type: Literal["message"]
    id: str
    seq: Count
    run_id: str | None
    role: Literal["user", "assistant"]
    content: Annotated[list[dict[str, Any]], Field(max_length=MAX_BLOCKS)]
    stop_reason: Annotated[str, Field(max_length=100)] | None
    usage: _UsageFigures | None
    user_visible: bool
    agent_visible: bool
    created_at: Moment


class RecordsLine(Payload):
    type: Literal["records"]
    ledger: dict[str, Any]


class FileLine(Payload):
    type: Literal["file"]
    path: str
    text: str | None = None
    base64: str | None = None


class EndLine(Payload):
    type: Literal["end"]
    messages: Count
    files: Count


def read_lines(lines: Sequence[Any], tenant: str, key: Idempotency | None, default_model: str) -> Brought:
    """Raises ExportInvalid naming the line (from 1) and its rule."""
    kinds = [line.get("type") if isinstance(line, dict) else None for line in lines]
    session = _checked(SessionLine, lines, 0).session
    messages = kinds.count("message")
    rows = [_row(lines, place) for place in range(1, 1 + messages)]
    ledger = _checked(RecordsLine, lines, 1 + messages).ledger if "records" in kinds else None
    first = 1 + messages + (ledger is not None)
    files = list(_files(lines, first))
    end = _checked(EndLine, lines, len(lines) - 1)
    if (end.messages, end.files) != (len(rows), len(files)):
        raise ExportInvalid(len(lines), "messages, files: lines are missing before it")
    posted = session.model_dump(exclude_none=True, exclude={"id", "title", "created_at", "messages"})
    opening = Opening(tenant, **{"model": default_model, **posted}, key=key)
    return Brought(opening, session.title, session.id, rows, ledger, files)


def _checked(model: type[Model], lines: Sequence[Any], place: int) -> Model:
    if place >= len(lines) or not isinstance(lines[place], dict):
        raise ExportInvalid(place + 1, "must be an object")
    try:
        return model.model_validate(lines[place])
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part)[:64] for part in found["loc"])
        rule = str(found["msg"]).removeprefix("Value error, ")
        raise ExportInvalid(place + 1, f"{field}: {rule}" if field else rule) from None


def _row(lines: Sequence[Any], place: int) -> StoredMessage:
    line = _checked(MessageLine, lines, place)
    if line.seq != place:
        raise ExportInvalid(place + 1, f"seq: must be {place}, messages are numbered from 1")
    usage = Usage(**line.usage.model_dump()) if line.usage else None
    shown = (line.user_visible, line.agent_visible)
    content = tuple(line.content)
    return StoredMessage(line.id, line.seq, None, line.role, content, line.stop_reason, usage, *shown, line.created_at)


def _files(lines: Sequence[Any], first: int) -> Iterator[tuple[str, bytes]]:
    files: set[tuple[str, ...]] = set()
    folders: set[tuple[str, ...]] = set()
    for place in range(first, len(lines) - 1):
        line = _checked(FileLine, lines, place)
        try:
            area, names = parse_path(line.path)
            if area is not Area.WORKSPACE or not names or (line.text is None) == (line.base64 is None):
                raise ExportInvalid(place + 1, "path: a file of /workspace, with either text or base64")
            above = {names[:depth] for depth in range(1, len(names))}
            if names in files or names in folders or above & files:
                raise ExportInvalid(place + 1, "path: stands where another file or its folder does")
            files.add(names)
            folders |= above
            yield line.path, (line.text or "").encode() if line.base64 is None else b"".join(base64_pieces(line.base64))
        except PathRefused as error:
            raise ExportInvalid(place + 1, f"path: {error.detail}") from None
        except ValueError:
            raise ExportInvalid(place + 1, "base64: must be base64 without line breaks") from None
