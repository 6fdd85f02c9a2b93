"""Memory at the ends of steps that rises is a leak; memory that stays is none."""

from __future__ import annotations

import numpy as np

from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence


def rank(floor: list[int]) -> RankEvidence:
    number = np.arange(len(floor), dtype=np.int64)
    columns = {"allocated_bytes.all.current": np.array(floor, np.int64)}
    return RankEvidence(0, steps=Rows(number * 10**7, columns, number))


def test_a_level_floor_is_no_leak() -> None:
    assert leak(rank([10**9] * 500)) == []


def test_a_rising_floor_is_one() -> None:
    (finding,) = leak(rank([10**9 + step * (1 << 20) for step in range(200)]))
    assert finding.evidence["slope_bytes_per_step"] == 1 << 20
