"""Reading snapshots: the same values as pickle builds, through tables."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path
from typing import Any

import pytest

from vramscope_analysis.snapshot import Snapshot, read_snapshot

TRACES = Path(__file__).parents[2] / "data" / "traces"


def assert_identical(got: Any, expected: Any, where: str = "") -> None:
    """Equal, and of the same types, and with the keys of dicts in the same order."""
    assert type(got) is type(expected), where
    if isinstance(expected, dict):
        assert list(got) == list(expected), where
        for key in expected:
            assert_identical(got[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list | tuple):
        assert len(got) == len(expected), where
        for index, (one, other) in enumerate(zip(got, expected, strict=True)):
            assert_identical(one, other, f"{where}[{index}]")
    else:
        assert got == expected, where


@pytest.mark.parametrize("name", ["conv__default", "oom__default"])
def test_a_recorded_snapshot_is_read_exactly(name: str) -> None:
    path = TRACES / f"{name}.pickle.gz"
    expected = pickle.loads(gzip.decompress(path.read_bytes()))
    snapshot = read_snapshot(path)
    assert_identical(snapshot.to_plain(), expected)
    assert_identical(Snapshot.from_plain(expected).to_plain(), expected)
