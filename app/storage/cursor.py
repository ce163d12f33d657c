"""Pages of sessions, in order of creation. The cursor is opaque to clients: the place of the last one they got."""

import base64
import binascii
from datetime import UTC, datetime

from app.conversation.session import Session
from app.errors import InvalidRequest
from app.ports import Page, Stretch

Place = tuple[datetime, str]
START: Place = (datetime(1970, 1, 1, tzinfo=UTC), "")


def place_of(session: Session) -> Place:
    return session.created_at, session.id


def page(found: Stretch[Session]) -> Page[Session]:
    return Page(found.rows, _encode(place_of(found.rows[-1])) if found.more else None)


def _encode(place: Place) -> str:
    at, session_id = place
    return base64.urlsafe_b64encode(f"{at.isoformat()} {session_id}".encode()).decode()


def decode(cursor: str | None) -> Place:
    """Raises InvalidRequest."""
    if cursor is None:
        return START
    try:
        at, _, session_id = base64.urlsafe_b64decode(cursor).decode().partition(" ")
        return datetime.fromisoformat(at).astimezone(UTC), session_id
    except (binascii.Error, ValueError, OverflowError) as error:
        raise InvalidRequest("The cursor in `after` is not one that this server gave.") from error
