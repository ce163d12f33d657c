"""Notes that outlive a session, by tenant and agent."""

import sqlalchemy as sa
from alembic import op

revision = "memory_notes"
down_revision = "session_context_counters"


def upgrade() -> None:
    op.create_table(
        "memory_notes",
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("day", sa.Date, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "agent", "seq"),
    )


def downgrade() -> None:
    op.drop_table("memory_notes")
