"""The two counters of a session's context. A turn writes them once, at its end."""

import sqlalchemy as sa
from alembic import op

revision = "session_context_counters"
down_revision = "first_tables"

COUNTERS = ("last_input_tokens", "compactions")


def upgrade() -> None:
    for name in COUNTERS:
        op.add_column("sessions", sa.Column(name, sa.Integer, nullable=False, server_default=sa.text("0")))


def downgrade() -> None:
    for name in COUNTERS:
        op.drop_column("sessions", name)
