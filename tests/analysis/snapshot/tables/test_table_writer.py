from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

import numpy as np

from tests.support.made_snapshots import assert_identical
from vramscope_analysis.snapshot.pickles.pickle_writer import PickleWriter, integer_opcodes
from vramscope_analysis.snapshot.tables.encoded_columns import EncodedNumbers, EncodedObjects
from vramscope_analysis.snapshot.tables.layout import Extra, Layout
from vramscope_analysis.snapshot.tables.table_writer import TableWriter


def written(rows: int, start: int, end: int) -> bytes:
    """Rows with a number, with one of a thousand texts, and some with one value more."""
    file = io.BytesIO()
    out = PickleWriter(file)
    names = EncodedObjects(
        np.arange(rows) % 1000, lambda out, number: out.value_again(f"name {number}"), {}
    )
    has = np.arange(0, rows, 7)
    extras = {"more": Extra(has, has * 2, np.zeros(len(has), np.bool_), [])}
    shape = np.ones(rows, np.uint16)
    shape[has] = 0
    layout = Layout((("n", "more", "name"), ("n", "name"), ("never",)), shape, extras)
    columns = {"n": EncodedNumbers(np.arange(rows), integer_opcodes), "name": names}
    TableWriter(out, layout, columns).write(start, end)
    out.finish()
    return file.getvalue()


def expected(start: int, end: int) -> list[dict[str, Any]]:
    return [
        {"n": at, **({} if at % 7 else {"more": 2 * at}), "name": f"name {at % 1000}"}
        for at in range(start, end)
    ]


def test_rows_come_in_order_with_their_keys() -> None:
    data = written(3500, 0, 3500)
    assert_identical(pickle.loads(data), expected(0, 3500))
    opcodes = [opcode.name for opcode, _, _ in pickletools.genops(data)]
    assert opcodes.count("APPENDS") == 4
    # Three keys and a thousand names.
    assert opcodes.count("SHORT_BINUNICODE") == 1003


def test_some_of_the_rows() -> None:
    assert_identical(pickle.loads(written(50, 20, 40)), expected(20, 40))
    assert pickle.loads(written(50, 20, 20)) == []
