"""The columns of a step row that tell of its peaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vramscope.peaks.peak_layout import UNKNOWN_PEAKS
from vramscope.peaks.peak_meter import PeakAccount, PeakMeter
from vramscope.peaks.step_parts import OUTSIDE, PART_NAMES, StepParts
from vramscope_protocol.columns import UNKNOWN

PEAK_NAMES: Final = (
    "step.peak_allocated_bytes",
    "step.peak_active_bytes",
    "step.peak_reserved_bytes",
    "step.peak_requested_bytes",
    "step.allocated_volume_bytes",
)
"""In the order of ``PEAK_COUNTERS``, and the volume."""


class StepPeaks:
    """Follows the peaks from step to step.

    Args:
        meter: marks the ends of steps.
        parts: splits steps, if they are to be split.
    """

    def __init__(self, meter: PeakMeter, parts: StepParts | None) -> None:
        self._meter = meter
        self.parts = parts
        self.names: tuple[str, ...] = PEAK_NAMES
        if parts is not None:
            self.names = (*PEAK_NAMES, "step.peak_part", *PART_NAMES)
        # Before the first end of a step seen, it is not known when that step began.
        self._account: PeakAccount | None = None

    def end_step(self, data_wait_us: int) -> tuple[Mapping[str, Any] | None, list[int]]:
        """A step is over, on the training thread.

        Args:
            data_wait_us: how long it waited for data.

        Returns:
            The counters as the job sees them, and the values of :attr:`names`.
        """
        interval = self._meter.mark(at_step_end=True)
        account, self._account = self._account, self._meter.open()
        values = [*UNKNOWN_PEAKS, UNKNOWN]
        if account is not None:
            self._meter.close(account)
            values = [*(account.peaks or UNKNOWN_PEAKS), account.volume_bytes]
        if self.parts is not None:
            part, of_parts = self.parts.step_ended(data_wait_us)
            values += [part if values[0] != UNKNOWN else OUTSIDE, *of_parts]
        return None if interval is None else interval.stats, values
