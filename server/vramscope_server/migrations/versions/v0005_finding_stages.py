"""Findings with stages, subjects and mutes; lines that are muted in every run of a name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def _added() -> tuple[sa.Column[object], ...]:
    return (
        sa.Column("subject", sa.Text(), nullable=False, server_default=""),
        sa.Column("stage", sa.String(16), nullable=False, server_default="confirmed"),
        sa.Column("confirmed_ns", sa.BigInteger(), nullable=True),
        sa.Column("is_final", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("judge", sa.String(64), nullable=False, server_default=""),
        sa.Column("muted", sa.Text(), nullable=True),
    )


def upgrade() -> None:
    for column in _added():
        op.add_column("findings", column)
    op.create_table(
        "finding_mutes",
        sa.Column("run_name", sa.String(512), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(512), nullable=False),
        sa.Column("muted", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_name", "kind", "subject"),
    )


def downgrade() -> None:
    op.drop_table("finding_mutes")
    with op.batch_alter_table("findings") as findings:
        for column in reversed(_added()):
            findings.drop_column(column.name)
