from __future__ import annotations

import pytest

from vramscope_analysis.snapshot.errors import SnapshotError, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (5, "5"),
        (-(2**70), str(-(2**70))),
        (2**500, "an integer of 501 bits"),
        (0.5, "0.5"),
        ("it", "'it'"),
        ("x" * 50, "'" + "x" * 40 + "…'"),
        ([1] * 9, "a list"),
        ({}, "a dict"),
    ],
)
def test_values_are_shown_shortly(value: object, text: str) -> None:
    assert shown(value) == text


def test_it_is_a_value_error() -> None:
    assert issubclass(SnapshotError, ValueError)
