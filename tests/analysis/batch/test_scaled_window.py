"""A window with another batch, held against the same training with that batch."""

from __future__ import annotations

import pytest

from tests.support.made_recordings import MIB, RecordedModel, cut
from tests.support.made_windows import real_peak, really_fits, recorded_window
from vramscope_analysis.batch.scaled_window import ScaledWindow

BATCH = 8


@pytest.fixture(scope="module")
def window() -> ScaledWindow:
    return ScaledWindow(recorded_window(BATCH))


@pytest.mark.parametrize("batch", [8, 12, 24, 40])
def test_the_peak_is_that_of_the_same_training_with_that_batch(
    window: ScaledWindow, batch: int
) -> None:
    assert window.at(batch / BATCH, None).peak_bytes == pytest.approx(real_peak(batch), rel=0.01)


@pytest.mark.parametrize("room_mib", [300, 500])
def test_it_fits_where_the_training_would(window: ScaledWindow, room_mib: int) -> None:
    room = room_mib * MIB
    told = [n for n in range(9, 120) if window.at(n / BATCH, room).fits]
    true = [n for n in range(9, 120) if really_fits(n, room, before=BATCH)]
    assert abs(len(told) - len(true)) <= 0.03 * len(true)
    assert true[-1] < 119  # the room is what ends it


def test_what_was_refused_is_told(window: ScaledWindow) -> None:
    found = window.at(100.0, 300 * MIB)
    assert not found.fits
    assert found.retries >= 1
    assert found.reserved_bytes <= 300 * MIB


def test_a_window_in_which_nothing_comes_and_goes_is_refused() -> None:
    recorded = RecordedModel()
    recorded.model.malloc(MIB)
    with pytest.raises(ValueError, match="depend on the batch"):
        ScaledWindow(cut(recorded.recording(), len(recorded.entries)))
