from __future__ import annotations

from vramscope.tensors.category import CODES, COLUMNS, KEPT_COLUMN, NONE
from vramscope_protocol.series import SERIES


def test_every_column_is_a_series_in_bytes() -> None:
    assert {SERIES[name].unit for name in (*COLUMNS, KEPT_COLUMN)} == {"B"}
    known = {name for name in SERIES if name.startswith("category.")}
    assert known == {*COLUMNS, KEPT_COLUMN}


def test_codes_are_told_apart_and_none_is_none_of_them() -> None:
    assert len(set(CODES)) == len(CODES) == len(COLUMNS)
    assert NONE not in CODES
