"""The row at the end of each step: its columns, and their values in the same order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from vramscope.collectors.allocator import AllocatorCounters, Layout
from vramscope.devices.device import Device
from vramscope.guard import guarded_row
from vramscope.notices import Notices
from vramscope.peaks.step_peaks import StepPeaks
from vramscope.sampling.clock import Clock
from vramscope.sampling.rows import FieldSet, Row, RowBuffer, RowSink, Value
from vramscope.steps.even_rise import EvenRise
from vramscope.steps.step_columns import StepColumns
from vramscope.steps.user_values import UserValues
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Field
from vramscope_protocol.series import PHASE, STEP, TIME_NS, unit_of

_FLOOR: Final = "allocated_bytes.all.current"
_STEP_NAMES: Final = ("step.duration_us", "step.data_wait_us")


class StepRows:
    """Reads the counters at the end of a step, and keeps the row until it is flushed.

    Args:
        device: read where there are no peaks.
        counters: which counters a row has.
        outbox: takes the rows.
        clock: for times and durations.
        notices: told of values that the user logs and that cannot be kept.
        peaks: the peaks of each step; without it a row has none of its own.
    """

    def __init__(
        self,
        device: Device,
        counters: AllocatorCounters,
        outbox: RowSink,
        clock: Clock,
        notices: Notices,
        peaks: StepPeaks | None,
    ) -> None:
        self._device = device
        self._counters = counters
        self._clock = clock
        self._peaks = peaks
        self._rows = RowBuffer("step", outbox)
        self._user_values = UserValues(notices)
        self._more: list[StepColumns] = []
        self._takes: list[tuple[Callable[[], Sequence[int]], list[int]]] = []
        """What reads them, and what stands there if that fails."""
        self._columns: tuple[Layout, tuple[Field, ...], FieldSet] | None = None
        self._last_boundary_ns: int | None = None
        self._floor_at: int | None = None
        self.rise = EvenRise()
        """Of what is allocated at the ends of steps."""
        self.peak_bytes = UNKNOWN
        """Highest allocated bytes of the step that ended last."""

    def add_columns(self, columns: StepColumns) -> None:
        """Before the first row: add columns."""
        self._more.append(columns)
        self._takes.append((columns.take, [UNKNOWN] * len(columns.names)))

    def log(self, values: Mapping[str, Any]) -> None:
        """Add the user's numbers to the next row."""
        self._user_values.log(values)

    def flush(self) -> None:
        """Hand the rows to the outbox; on the sampler thread."""
        self._rows.flush()

    def waiting(self) -> list[Row]:
        """Rows that were not handed over yet, with their fields; any thread."""
        return self._rows.waiting()

    def append(self, step: int, phase: int, data_wait_us: int) -> None:
        """A step ends now, on the training thread."""
        of_peaks: Sequence[int] = ()
        if self._peaks is None:
            stats = self._device.memory_stats()
        else:
            stats, of_peaks = self._peaks.end_step(data_wait_us)
            self.peak_bytes = of_peaks[0]
        layout, values = self._counters.read(stats)
        if self._floor_at is not None:
            self.rise.step_ended(values[self._floor_at])
        clock = self._clock
        now_ns = clock.monotonic_ns()
        last_ns = self._last_boundary_ns
        self._last_boundary_ns = now_ns
        row: list[Value] = [
            clock.time_ns(),
            step,
            phase,
            *values,
            UNKNOWN if last_ns is None else (now_ns - last_ns) // 1000,
            data_wait_us,
            *of_peaks,
        ]
        row += guarded_row("step columns", self._takes)
        if self._user_values.fields:
            row += self._user_values.take()
        self._rows.append(self._field_set(layout), row)

    def _field_set(self, layout: Layout) -> FieldSet:
        columns = self._columns
        user_fields = self._user_values.fields
        if columns is None or columns[0] is not layout or columns[1] is not user_fields:
            names = [TIME_NS, STEP, PHASE, *layout.keys, *_STEP_NAMES]
            if self._peaks is not None:
                names += self._peaks.names
            names += (name for more in self._more for name in more.names)
            fields = [Field(name, "q", unit_of(name)) for name in names]
            columns = (layout, user_fields, FieldSet([*fields, *user_fields]))
            self._columns = columns
            self._floor_at = layout.keys.index(_FLOOR) if _FLOOR in layout.keys else None
        return columns[2]
