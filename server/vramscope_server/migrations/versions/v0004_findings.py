"""Findings: what was wrong with a run, and from when until when."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "findings",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("opened_ns", sa.BigInteger(), nullable=False),
        sa.Column("resolved_ns", sa.BigInteger(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("findings_run", "findings", ["run_id", "opened_ns"])
    op.create_index("findings_open", "findings", ["resolved_ns"])


def downgrade() -> None:
    op.drop_table("findings")
