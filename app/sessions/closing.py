"""The end of a session: it takes no turns any more, and what should last of it is noted."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from app.conversation.session import Session
from app.conversation.usage import Usage
from app.ports import SessionStore

Conclude = Callable[[Session], Awaitable[Usage]]
"""Notes what should last of a session; the usage of its calls."""


@dataclass(frozen=True, slots=True)
class Closer:
    """`conclude` None: there is no memory. A close that was cut off is finished by the next one."""

    store: SessionStore
    conclude: Conclude | None
    _closing: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def close(self, tenant: str, session_id: str) -> Session:
        """Idempotent. Raises NotFound, SessionBusy."""
        async with self._closing.setdefault(session_id, asyncio.Lock()):
            session = await self.store.begin_close(tenant, session_id)
            if session.status == "closed":
                return session
            spent = await self.conclude(session) if self.conclude else Usage()
            return await self.store.end_close(tenant, session_id, spent)
