"""A window with another batch, held against the same training with that batch."""

from __future__ import annotations

import pytest

from tests.support.made_recordings import MIB, RecordedModel, cut
from tests.support.made_windows import WEIGHTS, real_peak, really_fits, scaled
from vramscope_analysis.batch.scaled_window import ScaledWindow

BATCH = 8


@pytest.fixture(scope="module")
def window() -> ScaledWindow:
    return scaled(BATCH)


@pytest.mark.parametrize("batch", [8, 12, 24, 40])
def test_the_peak_is_that_of_the_same_training_with_that_batch(
    window: ScaledWindow, batch: int
) -> None:
    assert window.changed(batch / BATCH, None).peak_bytes == pytest.approx(
        real_peak(batch), rel=0.015
    )


@pytest.mark.parametrize("room_mib", [300, 500])
def test_it_fits_where_the_training_would_after_a_change(
    window: ScaledWindow, room_mib: int
) -> None:
    room = room_mib * MIB
    told = [n for n in range(9, 120) if window.changed(n / BATCH, room).fits]
    true = [n for n in range(9, 120) if really_fits(n, room, before=BATCH)]
    assert len(set(told) ^ set(true)) <= 0.03 * len(true)
    assert true[-1] < 119  # the room is what ends it


@pytest.mark.parametrize("room_mib", [300, 500])
def test_it_fits_where_a_new_start_would(window: ScaledWindow, room_mib: int) -> None:
    room, state = room_mib * MIB, 2 * sum(WEIGHTS)
    told = [n for n in range(1, 120) if window.begun(n / BATCH, room, state).fits]
    true = [n for n in range(1, 120) if really_fits(n, room)]
    assert len(set(told) ^ set(true)) <= 0.05 * len(true)


def test_what_was_refused_is_told(window: ScaledWindow) -> None:
    found = window.changed(100.0, 300 * MIB)
    assert not found.fits
    assert found.retries >= 1
    assert found.reserved_bytes <= 300 * MIB


def test_going_through_it_again_needs_no_more(window: ScaledWindow) -> None:
    # What one pass leaves stands for what was there at its beginning.
    assert window.changed(1.0, None).peak_bytes == window.begun(1.0, None, 0).peak_bytes


def test_a_window_in_which_nothing_comes_and_goes_is_refused() -> None:
    recorded = RecordedModel()
    recorded.model.malloc(MIB)
    with pytest.raises(ValueError, match="depend on the batch"):
        ScaledWindow(cut(recorded.recording(), len(recorded.entries)))
