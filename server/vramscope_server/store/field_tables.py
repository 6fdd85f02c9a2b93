"""Names and types of the columns that chunks, heads and rollups hold; each table stored once."""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, insert, select

from vramscope_protocol.messages import Field
from vramscope_server.rows import ColumnLayout
from vramscope_server.store import tables

_decoder = msgspec.json.Decoder(list[Field])


class FieldTables:
    """Numbers of the stored field tables. Belongs to one thread.

    A number is remembered only once :meth:`confirm` says that its transaction was committed.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._unconfirmed: dict[str, int] = {}

    def id_of(self, connection: Connection, layout: ColumnLayout) -> int:
        """Number of a field table, stored now if it is new."""
        fingerprint = layout.fingerprint
        known = self._ids.get(fingerprint) or self._unconfirmed.get(fingerprint)
        if known is not None:
            return known
        table = tables.field_tables
        found = connection.scalar(select(table.c.id).where(table.c.fingerprint == fingerprint))
        if found is None:
            values = {"fingerprint": fingerprint, "fields": layout.fields_json.decode()}
            found = connection.execute(
                insert(table).values(values).returning(table.c.id)
            ).scalar_one()
        self._unconfirmed[fingerprint] = int(found)
        return int(found)

    def confirm(self) -> None:
        """The transaction was committed."""
        self._ids |= self._unconfirmed
        self._unconfirmed.clear()

    def forget_unconfirmed(self) -> None:
        """The transaction was rolled back."""
        self._unconfirmed.clear()


def load_layout(connection: Connection, field_table_id: int) -> ColumnLayout:
    """The stored field table of that number."""
    table = tables.field_tables
    fields = connection.execute(
        select(table.c.fields).where(table.c.id == field_table_id)
    ).scalar_one()
    return ColumnLayout(_decoder.decode(fields))
