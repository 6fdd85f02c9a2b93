"""What one process of a run has told since it started, as far as it may be judged."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from vramscope_analysis.evidence.growth_report import GrowthReport
from vramscope_analysis.evidence.memory_layout import MemoryLayout
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.recorded_window import RecordedWindow
from vramscope_analysis.evidence.run_evidence import Happening, RankEvidence, Stretch
from vramscope_analysis.evidence.settings_trial import SettingsTrial
from vramscope_protocol.messages import RankInfo
from vramscope_server.findings.map_layout import map_layout
from vramscope_server.findings.rising_floor import RisingFloor
from vramscope_server.findings.row_history import RowHistory
from vramscope_server.maps.current_map import MapParts
from vramscope_server.rows import Rows

MAX_EVENTS: Final = 512
MAX_EVENT_BYTES: Final = 1 << 20
"""Text and data of the events of one rank; beyond it the oldest go."""
MAX_STRETCHES: Final = 512
MAX_OOMS: Final = 32
MAX_OOM_BYTES: Final = 8 << 20
"""JSON of the reports of one rank, which takes much more as objects; beyond it the oldest go."""

CLOCKS_NS: Final = 2 * 10**9
"""The start of a process and the times of what it sends come from two clocks."""
SAMPLE_WINDOW: Final = 600
"""So many of the newest samples are whole; fewer where fewer steps are than `_WINDOW_OF_FEW`."""
_WINDOW_OF_FEW: Final = 1024
_HEAD_STEPS: Final = 64
_FLOOR: Final = "allocated_bytes.all.current"
_PEAK: Final = "step.peak_allocated_bytes"
_NOT_STRETCHES: Final = frozenset({"forward", "backward", "optimizer"})
_INT64_MAX: Final = (1 << 63) - 1
_MAX_ANSWERS: Final = 64
_OBJECTS: Final = 12
"""About so many times as much memory as JSON do the objects take that were read from it."""


class GatheredRank:
    """One life of a rank; a restart begins a new one.

    Args:
        info: what the process said of itself.
        before: the life before this one, if there was one.
    """

    def __init__(self, info: RankInfo, before: GatheredRank | None = None) -> None:
        self.info = info
        self.not_before_ns = 0 if before is None else self.started_ns - CLOCKS_NS
        """What is older was sent by the life before. Without one nothing is too old: the clock
        may have been set back since the process started."""
        self.steps = RowHistory(_HEAD_STEPS, _FLOOR, _PEAK)
        self.samples = RowHistory()
        self.ooms: OrderedDict[str, tuple[OomReport, int]] = (
            OrderedDict() if before is None else before.ooms
        )
        """When it ran out of memory, in the lives before too, and how large the report was."""
        self._rising = RisingFloor()
        self._growth_so_far: GrowthReport | None = None
        self._device_growth: GrowthReport | None = None
        self._host_growth: GrowthReport | None = None
        self._within_step: GrowthReport | None = None
        self.answers: deque[tuple[str, int]] = deque(maxlen=_MAX_ANSWERS)
        """Keys of those that were read."""
        self.trials: tuple[SettingsTrial, ...] = ()
        """What the newest recorded window says of other settings."""
        self.window: RecordedWindow | None = None
        """What it says of the job's requests."""
        self._layout: tuple[Mapping[str, Any], MemoryLayout] | None = None
        """Head of the newest map that was read, and what the map came to."""
        self.life = 0
        self.step_offset = 0
        self._events: deque[tuple[Happening, int]] = deque()
        self._event_bytes = 0
        self._stretches: OrderedDict[int, Stretch] = OrderedDict()
        self._status: dict[str, Any] = {}
        self._settings: str | None = None
        """The allocator's settings, as they were told last."""

    @property
    def started_ns(self) -> int:
        """When the process started; 0 is not known."""
        return self.info.process_started_ns or self.info.started_ns

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes."""
        rows = self.steps.held_bytes + self.samples.held_bytes
        return rows + self._event_bytes + _OBJECTS * self._oom_bytes

    @property
    def _oom_bytes(self) -> int:
        return sum(size_bytes for _, size_bytes in self.ooms.values())

    @property
    def growth(self) -> GrowthReport | None:
        """What grows on the device, as it was answered last, with what grows on the host."""
        device, host = self._device_growth, self._host_growth
        if host is None:
            return device
        # Its steps are those of another question.
        told = GrowthReport(host.time_ns, complete=host.complete) if device is None else device
        return replace(told, host_groups=host.host_groups)

    def take_steps(self, rows: Rows) -> bool:
        """Steps that ended; whether memory rises fast since then."""
        self.steps.append(rows)
        allocated = rows.column(_FLOOR)
        return allocated is not None and self._rising.take(allocated)

    def take_samples(self, rows: Rows) -> None:
        """Samples that were taken."""
        self.samples.append(rows)

    def take_status(self, status: dict[str, Any]) -> None:
        """What the agent says of its device and its process."""
        self._status = status

    def take_event(self, event: dict[str, Any], size_bytes: int) -> None:
        """Something that happened; phases become stretches."""
        if event["kind"] == "phase":
            self._take_phase(event)
            return
        happening = Happening(
            event["time_ns"], event["kind"], event["step"], event["text"], event["data"]
        )
        self._take(happening, size_bytes)

    def put_events_before(self, earlier: list[dict[str, Any]]) -> None:
        """Put events in front of those that came so far: of which some are among them."""
        known = {(each.time_ns, each.kind, each.text) for each, _ in self._events}
        later, self._events = self._events, deque()
        self._event_bytes = 0
        stretches, self._stretches = self._stretches, OrderedDict()
        for event in earlier:
            if (event["time_ns"], event["kind"], event["text"]) not in known:
                self.take_event(event, event_bytes(event))
        self._stretches |= stretches
        for happening, size_bytes in later:
            self._take(happening, size_bytes)

    def take_growth(self, report: GrowthReport, *, is_of_host: bool = False) -> bool:
        """An answer to the question what grows; whether it is the newest that tells something."""
        if report.holders_follow:
            self._growth_so_far = report
            return True
        known = self._host_growth if is_of_host else self._device_growth
        is_telling = bool(report.groups or report.host_groups or report.held or report.notes)
        if known is not None:
            if report.time_ns <= known.time_ns or not (is_telling or report.waiting):
                return False
            # What waits for a stream is seen at some moments only, and is another question.
            waiting = report.waiting or known.waiting
            told = report if is_telling else replace(known, time_ns=report.time_ns)
            report = told if told.waiting == waiting else replace(told, waiting=waiting)
        if is_of_host:
            self._host_growth = report
        else:
            self._device_growth, self._growth_so_far = report, None
        return True

    def take_within_step(self, report: GrowthReport) -> bool:
        """An answer to what is held within a step; whether it is the newest."""
        known = self._within_step
        if known is not None and (report.time_ns <= known.time_ns or not report.held):
            return False
        self._within_step = report
        return True

    def take_oom(self, report: OomReport, size_bytes: int = 0) -> None:
        """A report of running out of memory; one with the same id replaces it."""
        self.ooms[report.id] = report, size_bytes
        held_bytes = self._oom_bytes
        while len(self.ooms) > MAX_OOMS or (held_bytes > MAX_OOM_BYTES and len(self.ooms) > 1):
            _, (_, gone_bytes) = self.ooms.popitem(last=False)
            held_bytes -= gone_bytes

    def evidence(
        self, rank: int, window: int, parts: MapParts | None = None
    ) -> Callable[[], RankEvidence]:
        """Everything as judges read it.

        Args:
            rank: its number.
            window: so many of the newest steps are whole.
            parts: its memory map; None is none.

        Returns:
            What puts the rows to it, which takes a while: to be called in another thread, but
            never twice at the same time.
        """
        device = self.info.devices[0] if self.info.devices else None
        told = RankEvidence(
            rank,
            self.info.host,
            stretches=tuple(self._stretches.values()),
            events=tuple(happening for happening, _ in self._events),
            total_bytes=None if device is None else device.total_bytes,
            limit_bytes=None if device is None else device.limit_bytes,
            device_uuid="" if device is None else device.uuid or "",
            torch_version=self.info.software.get("torch", ""),
            settings=self._settings,
            processes=tuple(
                {**each, "own": each.get("pid") == self.info.pid}
                for each in self._status.get("processes") or ()
            ),
            outside=tuple(self._status.get("outside") or ()),
            growth=self.growth,
            growth_so_far=self._growth_so_far,
            ooms=tuple(
                sorted((each for each, _ in self.ooms.values()), key=lambda each: each.time_ns)
            ),
            trials=self.trials,
            window=self.window,
            within_step=self._within_step,
        )

        def with_rows() -> RankEvidence:
            sample_window = min(SAMPLE_WINDOW, SAMPLE_WINDOW * window // _WINDOW_OF_FEW)
            steps, samples = self.steps.rows(window), self.samples.rows(sample_window)
            total_bytes = told.total_bytes
            if total_bytes is None:
                total_bytes = samples.last("device.total_bytes")
            layout = None if parts is None else self._layout_of(parts)
            return replace(
                told, steps=steps, samples=samples, total_bytes=total_bytes, layout=layout
            )

        return with_rows

    def _layout_of(self, parts: MapParts) -> MemoryLayout | None:
        """The layout of a map of this life; read once, however often it is judged by."""
        if parts.head["why_not"] or parts.head["time_ns"] < self.started_ns - CLOCKS_NS:
            return None
        if self._layout is None or self._layout[0] is not parts.head:
            self._layout = parts.head, map_layout(parts)
        return self._layout[1]

    def _take(self, happening: Happening, size_bytes: int) -> None:
        told = happening.data.get("text") if happening.kind == "settings" else None
        self._settings = told if isinstance(told, str) else self._settings
        self._events.append((happening, size_bytes))
        self._event_bytes += size_bytes
        while len(self._events) > MAX_EVENTS or self._event_bytes > MAX_EVENT_BYTES:
            self._event_bytes -= self._events.popleft()[1]

    def _take_phase(self, event: dict[str, Any]) -> None:
        data = event["data"]
        name, number = data.get("phase"), _integer(data.get("id"))
        start_ns = _integer(data.get("start_ns"))
        if not isinstance(name, str) or name in _NOT_STRETCHES or number is None or not start_ns:
            return
        self._stretches[number] = Stretch(
            name,
            start_ns,
            _integer(data.get("end_ns")),
            event["step"],
            _integer(data.get("peak_bytes")),
        )
        while len(self._stretches) > MAX_STRETCHES:
            self._stretches.popitem(last=False)


def event_bytes(event: dict[str, Any]) -> int:
    """About how much an event holds."""
    return len(event["text"]) + len(repr(event["data"]))


def _integer(value: Any) -> int | None:
    is_number = type(value) is int
    return value if is_number and -_INT64_MAX <= value <= _INT64_MAX else None
