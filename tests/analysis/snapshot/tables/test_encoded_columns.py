from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

from vramscope_analysis.snapshot.pickles.pickle_writer import PickleWriter, integer_opcodes
from vramscope_analysis.snapshot.tables.encoded_columns import (
    EncodedColumn,
    EncodedExtra,
    EncodedNumbers,
    EncodedObjects,
)
from vramscope_analysis.snapshot.tables.layout import Extra

TEXTS = ["a", "b", "c"]


def texts(*numbers: int) -> EncodedObjects:
    return EncodedObjects(np.array(numbers), lambda out, number: out.value_again(TEXTS[number]), {})


def written(column: EncodedColumn, rows: list[int]) -> list[Any]:
    """What a list of the values is read as: new ones one by one, all others at once."""
    file = io.BytesIO()
    out = PickleWriter(file)
    out.write(b"](")
    which = np.array(rows)
    for place in sorted(column.unwritten(which).tolist()):
        column.write(out, rows[place])
    assert column.unwritten(which).tolist() == []
    out.write(b"".join(column.opcodes(which)))
    out.write(b"e")
    out.finish()
    made: list[Any] = pickle.loads(file.getvalue())
    return made


def test_numbers_are_always_written_out() -> None:
    column = EncodedNumbers(np.array([5, -1, 2**40]), integer_opcodes)
    assert written(column, [2, 0]) == [2**40, 5]


def test_objects_are_written_once() -> None:
    assert written(texts(2, 0, 2, 0), [0, 1, 2, 3]) == ["c", "a", "c", "a", "c", "a"]


def test_one_row_of_which_all_is_known() -> None:
    file = io.BytesIO()
    out = PickleWriter(file)
    column = texts(1, 1)
    out.write(b"](")
    for row in (0, 1):
        column.write(out, row)
    out.write(b"e")
    out.finish()
    assert pickle.loads(file.getvalue()) == ["b", "b"]


def extra() -> Extra:
    return Extra(np.array([1, 3]), np.array([0, 77]), np.array([True, False]), [{"kept": "aside"}])


def test_values_aside_come_before_those_of_the_column() -> None:
    column = EncodedExtra(extra(), texts(0, 0, 1, 1))
    made = written(column, [0, 1, 2, 3])
    assert made == ["a", {"kept": "aside"}, "b", "a", {"kept": "aside"}, "b", 77]


def test_values_that_have_no_column() -> None:
    assert written(EncodedExtra(extra(), None), [3, 1]) == [
        {"kept": "aside"},
        77,
        {"kept": "aside"},
    ]


def test_rows_aside_one_by_one() -> None:
    file = io.BytesIO()
    out = PickleWriter(file)
    column = EncodedExtra(extra(), texts(0, 0, 1, 1))
    out.write(b"](")
    for row in range(4):
        column.write(out, row)
    out.write(b"e")
    out.finish()
    assert pickle.loads(file.getvalue()) == ["a", {"kept": "aside"}, "b", 77]
