"""A step row has the columns that it says, whatever they come from."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.fake_device import FakeDevice
from tests.support.modelled_peaks import MIB, ModelledPeaks
from tests.support.recording_outbox import RecordingOutbox
from vramscope import guard
from vramscope.collectors.allocator import AllocatorCounters
from vramscope.notices import Notices
from vramscope.peaks.step_peaks import StepPeaks
from vramscope.steps.step_rows import StepRows
from vramscope_protocol.columns import UNKNOWN


class Numbers:
    """Columns of the test. Implements ``StepColumns``."""

    names = ("category.one", "category.two")

    def __init__(self, *rows: Sequence[int] | Exception) -> None:
        self._rows = list(rows)

    def take(self) -> Sequence[int]:
        row = self._rows.pop(0)
        if isinstance(row, Exception):
            raise row
        return row


class Rig:
    def __init__(self, peaks: StepPeaks | None = None) -> None:
        self.outbox = RecordingOutbox()
        self.rows = StepRows(
            FakeDevice(), AllocatorCounters(), self.outbox, FakeClock(), Notices(), peaks
        )

    def taken(self) -> list[dict[str, float]]:
        self.rows.flush()
        return self.outbox.rows("step")


def test_the_counters_of_a_row_are_the_jobs_and_the_peak_is_the_steps() -> None:
    modelled = ModelledPeaks()
    rig = Rig(StepPeaks(modelled.meter, None))
    modelled.peak(9)
    rig.rows.append(1, 0, 5)
    modelled.peak(4)
    rig.rows.append(2, 0, 6)
    first, second = rig.taken()
    assert first["step.peak_allocated_bytes"] == UNKNOWN
    assert second["step.peak_allocated_bytes"] == 4 * MIB
    assert second["allocated_bytes.all.peak"] == 9 * MIB
    assert (second["step"], second["phase"], second["step.data_wait_us"]) == (2, 0, 6)


def test_other_columns_are_added_in_their_order() -> None:
    rig = Rig()
    rig.rows.add_columns(Numbers([1, 2], [3, UNKNOWN]))
    rig.rows.append(1, 0, 0)
    rig.rows.log({"loss": 0.5})
    rig.rows.append(2, 0, 0)
    first, second = rig.taken()
    assert (first["category.one"], first["category.two"]) == (1, 2)
    assert (second["category.one"], second["category.two"]) == (3, UNKNOWN)
    assert second["user.loss"] == 0.5


def test_columns_that_fail_cost_neither_the_row_nor_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard, "_hook", None)
    monkeypatch.setattr(guard, "_counts", {})
    rig = Rig()
    rig.rows.add_columns(Numbers(RuntimeError("no"), [1], [1, 2]))
    for step in (1, 2, 3):
        rig.rows.append(step, 0, 0)
    assert [row["category.one"] for row in rig.taken()] == [UNKNOWN, UNKNOWN, 1]
    assert guard.error_count() == 1
