"""An export that comes back: its rows and records are checked, and become a session of their own."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

from app.context.archive import Section
from app.context.block_fields import KINDS, first_fault
from app.context.blocks import THINKING, without_breakpoints
from app.context.mint import mint_messages
from app.context.rules import all_answered, batches, first_violation, none_stray, one_result_each
from app.context.transplant_json import read_ledger_json
from app.conversation.messages import Message, StoredMessage
from app.conversation.records import Ledger
from app.conversation.session import NewSession, Session
from app.errors import ExportInvalid
from app.ports import IdSource
from app.sessions.opening import Offer, Opening, read_choices
from app.sessions.planting import Planter, Seed
from app.sessions.profiles import Profiles

# What a row of each role may hold. Blank texts and hollow rows are stored as they came; views leave them out.
_OF_ROLE = {"user": KINDS - {"tool_use", *THINKING}, "assistant": KINDS - {"tool_result"}}
_PAIRED = (batches(all_answered, none_stray, one_result_each),)


@dataclass(frozen=True, slots=True)
class Brought:
    """`origin`: id of the session that was exported. Row n stands on line n + 1, the ledger on the one after them."""

    opening: Opening
    title: str | None
    origin: str
    rows: Sequence[StoredMessage]
    ledger: Mapping[str, Any] | None
    files: Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Imports:
    ids: IdSource
    profiles: Profiles
    offer: Offer
    planter: Planter

    async def bring(self, brought: Brought) -> Session:
        """Raises ExportInvalid, InvalidPayload for the settings, and what `Planter.plant` does."""
        opening = brought.opening
        return await self.planter.plant(opening.tenant, partial(self._prepare, brought), opening.key)

    async def _prepare(self, brought: Brought) -> tuple[NewSession, Seed]:
        opening = brought.opening
        settings, system = await read_choices(self.profiles, self.offer, opening)
        rows, ledger, sections = await asyncio.to_thread(self._read, brought)
        new = NewSession(self.ids.new("ses"), opening.tenant, system, opening.model, settings, brought.title)
        return new, Seed(brought.origin, rows, ledger, sections, _each(brought.files))

    def _read(self, brought: Brought) -> tuple[list[StoredMessage], Ledger, Sequence[Section]]:
        check_rows(brought.rows)
        messages = [Message(row.role, without_breakpoints(row.content)) for row in brought.rows]
        minted = mint_messages(messages, lambda: self.ids.new("toolu"))
        rows = [replace(row, content=new.content) for row, new in zip(brought.rows, minted, strict=True)]
        if brought.ledger is None:
            return rows, Ledger(), ()
        try:
            return rows, *read_ledger_json(brought.ledger, rows)
        except ValueError as error:
            raise ExportInvalid(len(rows) + 2, str(error)) from None


def check_rows(rows: Sequence[StoredMessage]) -> None:
    """Raises ExportInvalid for a block that no row holds, and for a call without its result."""
    for row in rows:
        if fault := first_fault(row.content, "content", _OF_ROLE[row.role]):
            raise ExportInvalid(row.seq + 1, f"{fault.place}: {fault.rule}")
    runs = [list(run) for _, run in groupby((row for row in rows if row.agent_visible), key=lambda row: row.role)]
    joined = [Message(run[0].role, tuple(block for row in run for block in row.content)) for run in runs]
    if found := first_violation(_PAIRED, joined):
        raise ExportInvalid(runs[found.message][0].seq + 1, found.rule)


async def _each(files: Sequence[tuple[str, bytes]]) -> AsyncIterator[tuple[str, bytes]]:
    for file in files:
        yield file
