from __future__ import annotations

import numpy as np
import pytest

from vramscope_analysis.snapshot.tables.column_array import ColumnArray


def test_one_number_everywhere_takes_no_memory() -> None:
    column = ColumnArray(1000, np.int64, 0)
    column.put(slice(0, 600), np.full(600, 7))
    column.put(np.arange(600, 1000), [7] * 400)
    built = column.built()

    assert built.tolist() == [7] * 1000
    assert built.strides == (0,)
    assert built.dtype == np.int64
    assert not built.flags.writeable


def test_places_that_were_not_filled_hold_the_default() -> None:
    column = ColumnArray(5, np.int32, -1)
    column.put(np.array([1, 3]), [4, 4])
    assert column.built().tolist() == [-1, 4, -1, 4, -1]
    assert ColumnArray(3, np.int32, -1).built().tolist() == [-1, -1, -1]
    column = ColumnArray(3, np.int32, -1)
    column.put(slice(1, 2), [-1])
    assert column.built().tolist() == [-1, -1, -1]


def test_other_numbers_spread_it_out() -> None:
    column = ColumnArray(6, np.uint8, 9)
    column.put(slice(0, 2), [5, 5])
    column.put(slice(3, 4), [5])
    column.put(slice(4, 6), [5, 6])
    built = column.built()

    assert built.tolist() == [5, 5, 9, 5, 5, 6]
    assert built.flags.writeable
    column.put(slice(2, 3), [1])
    assert column.built().tolist() == [5, 5, 1, 5, 5, 6]


@pytest.mark.parametrize("value", [0, 2**63, 2**64 - 1])
def test_large_numbers(value: int) -> None:
    column = ColumnArray(2, np.uint64, 0)
    column.put(slice(0, 1), [value])
    column.put(slice(1, 2), [5])
    assert column.built().tolist() == [value, 5]


def test_no_rows() -> None:
    assert ColumnArray(0, np.int64, 0).built().shape == (0,)
