"""A window tells both: where pieces lie at its highest moment, and what its steps ask for."""

from __future__ import annotations

from tests.support.made_moments import MIB, recorded
from vramscope_analysis.evidence.recorded_window import RecordedWindow


def test_both_are_of_the_same_recording() -> None:
    window = RecordedWindow.of(recorded("unet__default"))
    assert window.layout.reserved_bytes == 2832 * MIB
    assert window.requests is not None
    assert (window.requests.steps, window.requests.largest.bytes) == (9, 256 * MIB)
