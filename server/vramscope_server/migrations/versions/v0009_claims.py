"""By whom a run and a stream are held. Those that are there belong to who comes next."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("owner", sa.Text(), nullable=False, server_default=""))
    op.add_column("runs", sa.Column("secret", sa.String(64), nullable=False, server_default=""))
    op.add_column("streams", sa.Column("secret", sa.String(64), nullable=False, server_default=""))


def downgrade() -> None:
    with op.batch_alter_table("streams") as streams:
        streams.drop_column("secret")
    with op.batch_alter_table("runs") as runs:
        runs.drop_column("secret")
        runs.drop_column("owner")
