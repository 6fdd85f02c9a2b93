"""Tokens that are good for one run only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tokens", sa.Column("run_id", sa.Text(), nullable=True))


def downgrade() -> None:
    # Without the column nothing would hold them to their run.
    op.execute("DELETE FROM tokens WHERE run_id IS NOT NULL")
    with op.batch_alter_table("tokens") as tokens:
        tokens.drop_column("run_id")
