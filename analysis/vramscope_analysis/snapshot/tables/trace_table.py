"""Trace entries as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from vramscope_analysis.snapshot.action import Action
from vramscope_analysis.snapshot.tables.building import Building
from vramscope_analysis.snapshot.tables.columns import (
    Column,
    IntegerColumn,
    PairColumn,
    TextColumn,
)
from vramscope_analysis.snapshot.tables.extra_column import WordColumn
from vramscope_analysis.snapshot.tables.stack_column import StackColumn
from vramscope_analysis.snapshot.tables.tables import Trace


def trace_table(building: Building, plain: Any, where: str) -> Trace:
    """The table of a list of trace entries; SnapshotError for what PyTorch cannot have written."""
    rows = building.rows(plain, where)
    n = len(rows)
    texts: dict[str, int] = {}
    action = WordColumn("action", n, Action, building.values)
    address = IntegerColumn("addr", n, np.uint64)
    device_free = IntegerColumn("device_free", n, np.uint64, into=address)
    size = IntegerColumn("size", n, np.int64, least=0)
    stream = IntegerColumn("stream", n, np.int64)
    time_us = IntegerColumn("time_us", n, np.int64)
    pool_id = PairColumn("pool_id", n)
    stack = StackColumn("frames", n, building.stacks)
    compile_context = TextColumn("compile_context", n, texts)
    user_metadata = TextColumn("user_metadata", n, texts)
    columns: list[Column] = [
        action, address, device_free, size, stream, time_us, pool_id, stack, compile_context,
        user_metadata,
    ]  # fmt: skip
    layout = building.fill(
        rows,
        {column.key: column for column in columns},
        ("action", "size", "addr|device_free"),
    )
    return Trace(
        action=action.built(),
        address=address.built(),
        size=size.built(),
        stream=stream.built(),
        time_us=time_us.built(),
        pool_id=pool_id.pairs(),
        stack=stack.built(),
        compile_context=compile_context.built(),
        user_metadata=user_metadata.built(),
        texts=list(texts),
        layout=layout,
    )
