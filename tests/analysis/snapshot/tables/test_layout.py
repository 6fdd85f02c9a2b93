from __future__ import annotations

import numpy as np

from vramscope_analysis.snapshot.tables.layout import Extra, Layout


def test_values_of_rows() -> None:
    extra = Extra(
        rows=np.array([1, 4, 6]),
        values=np.array([7, 0, -3]),
        is_object=np.array([False, True, False]),
        objects=["seven"],
    )
    assert extra.of(np.array([6, 1, 4])) == [-3, 7, "seven"]
    assert extra.places(np.array([4, 6])).tolist() == [1, 2]
    assert extra.has(np.array([0, 1, 5, 6, 7])).tolist() == [False, True, False, True, False]


def test_none_at_all() -> None:
    nothing = np.zeros(0, np.int64)
    extra = Extra(nothing, nothing, np.zeros(0, np.bool_), [])
    assert extra.has(np.array([0, 5])).tolist() == [False, False]


def test_keys() -> None:
    layout = Layout((("a", "b"), ("b", "c")), np.array([1, 0], np.uint16), {})
    assert layout.keys == {"a", "b", "c"}
    assert layout.keys_of(0) == ("b", "c")
