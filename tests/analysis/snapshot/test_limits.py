from __future__ import annotations

import pickle

import pytest

from tests.support.bad_snapshots import entry, snapshot
from vramscope_analysis.snapshot import Limits, SnapshotError, read_snapshot
from vramscope_analysis.snapshot.limits import over


def test_a_refusal_names_the_limit_and_the_option() -> None:
    assert str(over("it is long", 12_000, "depth")) == (
        "it is long (limit 12,000); if you trust the file, read it with Limits(depth=...)"
    )


def test_rows_grow_with_the_file() -> None:
    assert Limits().rows(0) == 1_000_000
    assert Limits().rows(80) == 1_000_010


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(file_bytes=100), "file has .* bytes .limit 100.*file_bytes"),
        (Limits(opcodes=100), "too many opcodes .limit 100"),
        (Limits(depth=3), "nested too deeply .limit 3"),
        (Limits(integer_bytes=2), "integer of 6 bytes .limit 2"),
        (Limits(unfolded_values=2), "unfolds to more than .* values .* .limit 2"),
        (Limits(shapes=2), "rows differ in their keys .limit 2"),
    ],
)
def test_each_limit_holds(limits: Limits, words: str) -> None:
    entries = [entry(addr=2**40), entry(a=1), entry(b=1)] * 9000
    data = pickle.dumps(snapshot(device_traces=[entries], more=[1, [2, [3, [4]]]]), 4)
    read_snapshot(data)
    with pytest.raises(SnapshotError, match=words):
        read_snapshot(data, limits=limits)
