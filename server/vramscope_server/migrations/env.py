"""Alembic's entry: runs the migrations on the connection that ``Database`` hands over."""

from __future__ import annotations

from alembic import context

from vramscope_server.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
# No transaction of our own: the caller's holds the whole upgrade, so it happens all or not at all.
context.run_migrations()
