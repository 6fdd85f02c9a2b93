from __future__ import annotations

import pytest

from vramscope.cli.text_table import text_table


def test_columns_begin_in_line_and_numbers_end_in_line() -> None:
    rows = [("NAME", "SIZE", "WHY"), ("a", "1 B", "x"), ("longer", "512 B", "")]
    assert text_table(rows, right={1}).splitlines() == [
        "NAME     SIZE  WHY",
        "a         1 B  x",
        "longer  512 B",
    ]


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"zip\(\)"):
        text_table([("A", "B"), ("a",)])
