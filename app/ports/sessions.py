"""The store of sessions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from app.conversation.run import NewMessage
from app.conversation.session import Idempotency, NewSession, Session
from app.conversation.usage import Usage
from app.ports.pages import Page

# Asked inside the transaction that makes something, with how many of its kind the tenant has besides it; raises when
# that is too many. Two that are made at once are asked one after the other.
Admit = Callable[[int], None]


class SessionStore(Protocol):
    async def create(
        self,
        session: NewSession,
        messages: Sequence[NewMessage],
        key: Idempotency | None,
        admit: Admit | None = None,
    ) -> tuple[Session, bool]:
        """Creates the session with its first rows (import, fork) in one transaction; False when the key had made it.

        Tool calls of these messages get rows in state done. `admit` is asked with the tenant's sessions, unless the
        key had made it. Raises IdempotencyMismatch, and what `admit` raises.
        """
        ...

    async def made_by(self, key: Idempotency | None) -> Session | None:
        """What `create` made under the key, if anything. Raises IdempotencyMismatch, and NotFound when it is deleted.

        To be asked before the work that creating one takes.
        """
        ...

    async def count(self, tenant: str) -> int:
        """As `admit` of `create` is told it, without a lock."""
        ...

    async def get(self, tenant: str, session_id: str) -> Session:
        """Raises NotFound, for another tenant's session too."""
        ...

    async def list(self, tenant: str, after: str | None, limit: int) -> Page[Session]:
        """In order of creation; fewer than `limit`, as in a `Stretch`. Raises InvalidRequest for the cursor `after`."""
        ...

    async def update(
        self, tenant: str, session_id: str, title: str | None, metadata: Mapping[str, object] | None, model: str | None
    ) -> Session:
        """Changes what is not None."""
        ...

    async def find(self, session_id: str) -> Session:
        """Whoever's it is: for what works for a session, never for who asks from outside. Raises NotFound."""
        ...

    async def begin_close(self, tenant: str, session_id: str) -> Session:
        """From now on no run is accepted; a closed session is left as it is. Raises NotFound, SessionBusy."""
        ...

    async def end_close(self, tenant: str, session_id: str, spent: Usage) -> Session:
        """Closes it, with the usage of its memory; a closed session is left as it is. Raises NotFound."""
        ...

    async def delete(self, tenant: str, session_id: str) -> Sequence[str]:
        """Deletes the session with all its rows and the sessions of its subagents; the ids of all that are gone.

        Raises SessionBusy while a run is live.
        """
        ...
