"""Rows of counters as ingest hands them to the hub."""

from __future__ import annotations

from array import array
from typing import Any

from vramscope_protocol.columns import encode_columns
from vramscope_protocol.messages import BatchKind, Field
from vramscope_server.rows import ColumnLayout, Rows


def make_rows(kind: BatchKind = "sample", **columns: list[Any]) -> Rows:
    """Rows with the given columns; ``__`` in a keyword stands for a dot. Ints are int64."""
    fields: list[Field] = []
    arrays: list[array[Any]] = []
    for keyword, values in columns.items():
        code = "d" if any(isinstance(value, float) for value in values) else "q"
        fields.append(Field(keyword.replace("__", "."), "d" if code == "d" else "q"))
        arrays.append(array(code, values))
    count = len(arrays[0])
    return Rows.from_batch(kind, 0, ColumnLayout(fields), count, encode_columns(arrays))
