"""The parts of a step: forward, backward, optimizer, each with its peak, its volume and its time.

Told from what is seen on the training thread: ``torch.autograd.backward`` and the steps of
optimizers. What comes before a backward pass is forward; what comes between the last one and the
optimizer, or after it, belongs to no part. Several passes and several optimizers add up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from vramscope.peaks.peak_meter import PeakAccount, PeakMeter
from vramscope.peaks.split_rate import SplitRate
from vramscope_protocol.columns import UNKNOWN

FORWARD: Final = 1
BACKWARD: Final = 2
OPTIMIZER: Final = 3
OUTSIDE: Final = 0

_PARTS: Final = {FORWARD: "forward", BACKWARD: "backward", OPTIMIZER: "optimizer"}
PART_NAMES: Final = tuple(
    f"part.{name}.{gauge}"
    for name in _PARTS.values()
    for gauge in ("peak_bytes", "volume_bytes", "time_us")
)
_NOT_SPLIT: Final = (UNKNOWN,) * len(PART_NAMES)
_FIRST_REACHED: Final = (FORWARD, BACKWARD, OPTIMIZER, OUTSIDE)


class _Part:
    """What one part has come to within a step."""

    def __init__(self) -> None:
        self.peak_bytes = UNKNOWN
        self.volume_bytes = 0
        self.time_ns = 0
        self.is_known = True

    def add(self, account: PeakAccount, time_ns: int) -> None:
        """Add a stretch of it."""
        peak_bytes, volume_bytes = account.allocated_peak_bytes, account.volume_bytes
        self.is_known = self.is_known and UNKNOWN not in (peak_bytes, volume_bytes)
        self.peak_bytes = max(self.peak_bytes, peak_bytes)
        self.volume_bytes += volume_bytes
        self.time_ns += time_ns


class StepParts:
    """Splits every n-th step. Every call comes from the training thread.

    Args:
        meter: marks the boundaries.
        rate: chooses the steps.
        charge: told what a boundary took, in nanoseconds.
        clock_ns: the time.
    """

    def __init__(
        self,
        meter: PeakMeter,
        rate: SplitRate,
        charge: Callable[[int], None],
        clock_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._meter = meter
        self._rate = rate
        self._charge = charge
        self._clock_ns = clock_ns
        self._step_began_ns: int | None = None
        self._within: list[int] = []
        self._stretch: PeakAccount | None = None
        """Of the stretch since the last boundary; ``None`` in a step that is not split."""
        self._stretch_began_ns = 0
        self._parts: dict[int, _Part] = {}
        self._has_backward = False
        self._cost_ns = 0
        self._is_splitting = False

    @property
    def is_splitting(self) -> bool:
        """Whether this step is split: else nobody need tell what goes on within it."""
        return self._stretch is not None

    def backward_begins(self) -> None:
        """A backward pass begins; not one inside another."""
        if self._stretch is None:
            return
        self._has_backward = True
        self._boundary(self._within[-1] if self._within else FORWARD)
        self._within.append(BACKWARD)

    def backward_ended(self) -> None:
        """It is over."""
        self._ended(BACKWARD)

    def optimizer_begins(self) -> None:
        """An optimizer begins to step."""
        if self._stretch is None:
            return
        self._boundary(self._within[-1] if self._within else OUTSIDE)
        self._within.append(OPTIMIZER)

    def optimizer_ended(self) -> None:
        """It has stepped, and the step is not over."""
        self._ended(OPTIMIZER)

    def step_ended(self, data_wait_us: int) -> tuple[int, tuple[int, ...]]:
        """The step is over, and marked.

        Args:
            data_wait_us: how long it waited for data, which is no part of its forward.

        Returns:
            In which part its peak was, and the values of :data:`PART_NAMES`.
        """
        now_ns = self._clock_ns()
        began_ns, self._step_began_ns = self._step_began_ns, now_ns
        answer: tuple[int, tuple[int, ...]] = (OUTSIDE, _NOT_SPLIT)
        if self._stretch is not None:
            self._close(OPTIMIZER if OPTIMIZER in self._within else OUTSIDE, now_ns)
            answer = self._highest(), self._values(max(0, data_wait_us))
        if began_ns is not None:
            duration_ns = now_ns - began_ns - self._cost_ns
            self._rate.step_ended(duration_ns, self._cost_ns if self._is_splitting else None)
        self._is_splitting = False
        self._within.clear()
        self._parts.clear()
        self._has_backward = False
        self._cost_ns = 0
        if self._rate.is_due():
            self._is_splitting = True
            self._open(now_ns)
        return answer

    def _ended(self, part: int) -> None:
        # A step that ended inside of it, or began, has nothing open.
        if self._stretch is not None and self._within[-1:] == [part]:
            self._boundary(part)
            if self._within:
                self._within.pop()

    def _boundary(self, part: int) -> None:
        now_ns = self._clock_ns()
        if self._meter.mark() is None:
            self._give_up()
        else:
            self._close(part, now_ns)
            self._open(self._clock_ns())
        took_ns = self._clock_ns() - now_ns
        self._cost_ns += took_ns
        self._charge(took_ns)

    def _open(self, now_ns: int) -> None:
        self._stretch = self._meter.open()
        self._stretch_began_ns = now_ns

    def _close(self, part: int, now_ns: int) -> None:
        stretch, self._stretch = self._stretch, None
        if stretch is not None:
            self._meter.close(stretch)
            self._parts.setdefault(part, _Part()).add(stretch, now_ns - self._stretch_began_ns)

    def _give_up(self) -> None:
        """The counters must be left alone here: this step is not split after all."""
        stretch, self._stretch = self._stretch, None
        if stretch is not None:
            self._meter.close(stretch)
        self._within.clear()

    def _highest(self) -> int:
        known = [part for part in _FIRST_REACHED if part in self._parts]
        if not self._has_backward or not all(self._parts[part].is_known for part in known):
            return OUTSIDE
        # The first of equal ones: a part begins where the one before it ended.
        return max(known, key=lambda part: self._parts[part].peak_bytes)

    def _values(self, data_wait_us: int) -> tuple[int, ...]:
        values: list[int] = []
        for code in _PARTS:
            part = self._parts.get(code)
            if part is None:
                values += (UNKNOWN, UNKNOWN, UNKNOWN)
                continue
            waited_us = data_wait_us if code == FORWARD else 0
            values.append(part.peak_bytes if part.is_known else UNKNOWN)
            values.append(part.volume_bytes if part.is_known else UNKNOWN)
            values.append(max(0, part.time_ns // 1000 - waited_us))
        return tuple(values)
