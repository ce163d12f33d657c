"""Notes in memory."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from app.conversation.notes import Note, Scope


class MemoryNotes:
    """Implements `ports.NoteStore`."""

    def __init__(self) -> None:
        self._notes: defaultdict[Scope, list[Note]] = defaultdict(list)

    async def read(self, scope: Scope) -> Sequence[Note]:
        return list(self._notes[scope])

    async def add(self, scope: Scope, notes: Sequence[Note], most: int) -> None:
        present = self._notes[scope]
        known = {(note.session_id, note.text) for note in present}
        for note in notes:
            if (note.session_id, note.text) not in known:
                present.append(replace(note, seq=present[-1].seq + 1 if present else 1))
        del present[: max(0, len(present) - most)]

    async def replace(self, scope: Scope, old: Sequence[Note], new: Sequence[Note]) -> bool:
        present, seqs = self._notes[scope], [note.seq for note in old]
        if [note for note in present if note.seq in seqs] != list(old):
            return False
        kept = [note for note in present if note.seq not in seqs]
        placed = [replace(note, seq=seq) for note, seq in zip(new, seqs, strict=False)]
        self._notes[scope] = sorted([*placed, *kept], key=lambda note: note.seq)
        return True
