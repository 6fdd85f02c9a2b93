"""The columns of a step row about its peaks."""

from __future__ import annotations

from tests.support.modelled_peaks import MIB, ModelledPeaks
from vramscope.peaks.split_rate import SplitRate
from vramscope.peaks.step_parts import PART_NAMES, StepParts
from vramscope.peaks.step_peaks import PEAK_NAMES, StepPeaks
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.series import SERIES


def test_each_step_has_its_own_peak_and_the_job_its_own() -> None:
    modelled = ModelledPeaks()
    peaks = StepPeaks(modelled.meter, None)
    peaks.end_step(0)
    for mib in (30, 10, 20):
        modelled.peak(mib)
        modelled.peak(1)
        stats, values = peaks.end_step(0)
        assert dict(zip(peaks.names, values, strict=True)) == {
            "step.peak_allocated_bytes": mib * MIB,
            "step.peak_active_bytes": mib * MIB,
            "step.peak_reserved_bytes": modelled.model.reserved_bytes,
            "step.peak_requested_bytes": mib * MIB,
            "step.allocated_volume_bytes": (mib + 1) * MIB,
        }
        assert stats is not None
        assert stats["allocated_bytes"]["all"]["peak"] == 30 * MIB


def test_the_first_row_knows_nothing_of_where_its_step_began() -> None:
    modelled = ModelledPeaks()
    peaks = StepPeaks(modelled.meter, None)
    modelled.peak(5)
    _, values = peaks.end_step(0)
    assert values == [UNKNOWN] * len(PEAK_NAMES)


def test_at_the_end_of_a_step_that_is_not_at_rest_the_counters_are_there_all_the_same() -> None:
    modelled = ModelledPeaks()
    peaks = StepPeaks(modelled.meter, None)
    peaks.end_step(0)
    modelled.is_at_rest = False
    modelled.peak(5)
    assert peaks.end_step(0)[1][0] == 5 * MIB  # reset at the end of the step before
    modelled.peak(4)
    stats, values = peaks.end_step(0)
    assert values[0] == UNKNOWN
    assert values[4] == 4 * MIB
    assert stats == modelled.model.memory_stats()


def test_parts_add_their_columns() -> None:
    modelled = ModelledPeaks()
    parts = StepParts(modelled.meter, SplitRate(1.0), modelled.charge, modelled.clock_ns)
    peaks = StepPeaks(modelled.meter, parts)
    assert peaks.names == (*PEAK_NAMES, "step.peak_part", *PART_NAMES)
    peaks.end_step(0)
    modelled.now_ns += 10**9
    peaks.end_step(0)
    modelled.peak(9)
    parts.backward_begins()
    modelled.peak(3)
    parts.backward_ended()
    values = dict(zip(peaks.names, peaks.end_step(0)[1], strict=True))
    assert values["step.peak_part"] == 1
    assert values["step.peak_allocated_bytes"] == values["part.forward.peak_bytes"] == 9 * MIB


def test_every_column_is_a_known_series() -> None:
    assert {*PEAK_NAMES, "step.peak_part", *PART_NAMES} <= SERIES.keys()
