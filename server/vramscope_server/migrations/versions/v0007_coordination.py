"""Commands that all ranks run at the same step: which step, and what was decided."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def _added() -> tuple[sa.Column[object], ...]:
    return (
        sa.Column("note", sa.Text(), nullable=False, server_default=""),
        sa.Column("together", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("at_step", sa.BigInteger(), nullable=True),
        sa.Column("decision", sa.String(8), nullable=True),
        sa.Column("decision_reason", sa.Text(), nullable=False, server_default=""),
        sa.Column("decided_ns", sa.BigInteger(), nullable=True),
    )


def upgrade() -> None:
    for column in _added():
        op.add_column("commands", column)


def downgrade() -> None:
    with op.batch_alter_table("commands") as commands:
        for column in reversed(_added()):
            commands.drop_column(column.name)
