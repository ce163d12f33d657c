"""The offload file of another session with the same rows: made of its own rows, each on the lines where it stood."""

from collections.abc import Sequence

from app.context.archive import Section, read_tail, render_section
from app.conversation.messages import StoredMessage

# What interrupted writes left between the sections of the old file, in lines; blank ones stand in its place.
MAX_GAP = 100_000


def planned(sections: Sequence[Section], last_seq: int, needed_seq: int) -> list[Section]:
    """The sections of the new file: those of the old one as far as they are of rows up to `last_seq`, and one more when
    they end before `needed_seq`. Line 0: wherever it comes."""
    plan: list[Section] = []
    following = 1
    for section in sections:
        if section.first_seq != following or section.first_seq > last_seq:
            break
        whole = section.last_seq <= last_seq
        plan.append(section if whole else Section(following, last_seq, section.first_line, 0))
        following = plan[-1].last_seq + 1
    return [*plan, Section(following, needed_seq, 0, 0)] if needed_seq >= following else plan


def replanted(
    plan: Sequence[Section], rows: Sequence[StoredMessage], session_id: str
) -> tuple[bytes, Sequence[Section] | None]:
    """The file, and its sections; None where some row stands on other lines than in the old one.

    `rows`: all from seq 1 to the last of the plan.
    """
    texts: list[str] = []
    line, gaps = 1, 0
    for section in plan:
        gap = max(0, section.first_line - line)
        if gap and gaps + gap <= MAX_GAP:
            texts.append("\n" * (gap - (line == 1)))
            line, gaps = line + gap, gaps + gap
        texts.append(render_section(rows[section.first_seq - 1 : section.last_seq], session_id, line))
        line += texts[-1].count("\n") + (line == 1)
    data = "".join(texts).encode()
    made = read_tail(data).sections
    return data, made if all(map(_same_lines, plan, made)) else None


def _same_lines(wanted: Section, made: Section) -> bool:
    return made.first_line == (wanted.first_line or made.first_line) and made.last_line == (
        wanted.last_line or made.last_line
    )
