"""The schema's revisions as constants: reading them from the migrations would cost every server Alembic's 12 MB."""

# Oldest first; a test holds them against the migrations.
REVISIONS = ("first_tables", "session_context_counters", "memory_notes")


def is_current(revision: str | None) -> bool:
    """Whether a database at `revision` has all that this release needs; one unknown here is of a later release."""
    return revision is not None and (revision == REVISIONS[-1] or revision not in REVISIONS)
