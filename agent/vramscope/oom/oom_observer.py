"""What the agent does when memory has run out: on the thread that asked for it, within a second.

Files are written on another thread, so that a disk that hangs costs the job a second and no more.
A report is there twice: first with what is known at once, then, in its place, with everything; a
process that is killed in between leaves the first.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Final

from vramscope.guard import summary
from vramscope.history.no_collection import no_collection
from vramscope.oom.burst import Burst, Detail
from vramscope.oom.moment import Moment, Source
from vramscope.oom.report import Report, ReportMaker, encoded
from vramscope.oom.report_folder import ReportFile, file_name
from vramscope.oom.report_writer import ReportWriter, Writing
from vramscope.oom.thread_stacks import Line
from vramscope.sampling.clock import Clock
from vramscope_protocol.messages import Event, OomBegin

BUDGET_S: Final = 0.9
"""Time that one report in full may take of the job; a light one takes a few milliseconds."""
COLLECT_S: Final = 0.7
"""Of it: for what is looked at; the rest is for the disk."""
WRITE_S: Final = 0.1
"""The disk has so long in any case."""
SAMPLE_S: Final = 0.1
"""For the sample of this moment, which the sampler thread takes."""
LIGHT_WRITE_S: Final = 0.2
MAX_LIGHT: Final = 3
"""Light reports kept: the newest."""
QUIET_S: Final = 1.0
"""When memory has not run out for so long, what was kept back of a burst is told."""
MAX_OPEN: Final = 16
"""Reports that a later step may make recovered."""

Ship = Callable[[OomBegin, "ReportFile | None", bytes], object]
"""Takes a report to be delivered: its file, or, where there could be none, its bytes."""


class _Kept:
    """A report in the hands of this process: once it is written, only what is told of it."""

    def __init__(self, moment: Moment, report: Report, detail: Detail) -> None:
        self.moment = moment
        self.detail = detail
        self.told = _told(report)
        self.step: int | None = report["step"]
        self.begin: OomBegin | None = None
        self.data = b""
        """All of it, where there is no file."""
        self.file: ReportFile | None = None
        self.is_shipped = False
        self.is_dropped = False


class OomObserver:
    """Writes, counts and tells. Any thread.

    Args:
        maker: makes reports.
        writer: writes files.
        clock: times of events.
        emit: takes an event; must not block.
        ship: takes a report to be delivered.
        sample_now: has the sampler take a row, within a time.
    """

    def __init__(
        self,
        maker: ReportMaker,
        writer: ReportWriter,
        *,
        clock: Clock,
        emit: Callable[[Event], object],
        ship: Ship,
        sample_now: Callable[[float], object],
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._maker = maker
        self._writer = writer
        self._clock = clock
        self._emit = emit
        self._ship = ship
        self._sample_now = sample_now
        self._monotonic_s = monotonic_s
        # Re-entrant: a finalizer of the job may run out of memory inside.
        self._lock = threading.RLock()
        self._burst = Burst()
        self._light: deque[_Kept] = deque()
        self._open: deque[_Kept] = deque(maxlen=MAX_OPEN)
        self._last_s = 0.0
        self._has_news = False

    def out_of_memory(
        self, device: int, segment_bytes: int, allowed_bytes: int, free_bytes: int
    ) -> None:
        """PyTorch has no memory to give: it is about to raise, on this thread."""
        with self._lock:
            now_s = self._last_s = self._monotonic_s()
            self._has_news = True
            detail = self._burst.decide(now_s)
            if detail is None:
                return
            skipped = self._burst.take_skipped()
        moment = Moment(
            self._clock.time_ns(),
            "observer",
            device=device,
            segment_bytes=segment_bytes,
            allowed_bytes=allowed_bytes,
            device_free_bytes=free_bytes,
            skipped=skipped,
        )
        self._report(moment, detail)

    def noticed(self, source: Source, message: str, lines: list[Line] | None) -> None:
        """Memory ran out where PyTorch does not tell of it.

        Args:
            source: how it was noticed.
            message: of the exception, or in our words.
            lines: that the exception came through, the innermost first; ``None`` if there is
                none, and so nobody knows on which thread it was.
        """
        moment = Moment(self._clock.time_ns(), source, message=message, lines=lines)
        if lines is None:
            moment.thread_number = None
        with self._lock:
            now_s = self._last_s = self._monotonic_s()
            self._has_news = True
            skipped = self._burst.take_skipped()
            # Only counted: what there is to be seen has gone, and this is an agent's thread.
            is_full = source != "counter" and self._burst.decide(now_s) == "full"
            self._burst.take_skipped()  # itself: it may be the end, and is not skipped
            moment.skipped = skipped
        self._report(moment, "full" if is_full else "light")

    def asked(self, linked_to: str) -> str:
        """Report as if memory had run out, since it has for another rank. Agent thread.

        Returns:
            Id of the report.
        """
        moment = Moment(self._clock.time_ns(), "asked", thread_number=None, linked_to=linked_to)
        self._report(moment, "full")
        return moment.id

    @property
    def open(self) -> Collection[object]:
        """What ran out since a step has ended last; always the same object."""
        return self._open

    @property
    def has_open(self) -> bool:
        """Whether memory ran out, and no step has ended since."""
        return bool(self._open)

    def ended_by(self, message: str, lines: list[Line]) -> None:
        """An exception that says that memory ran out ends the job. On its thread.

        Args:
            message: of the exception.
            lines: that it came through, the innermost first.
        """
        with self._lock:
            kept = self._open[-1] if self._open else None
            if kept is None:
                return
            skipped = self._burst.take_skipped()
            if kept in self._light:
                self._light.remove(kept)
        moment = kept.moment
        if skipped:
            # The last ones left nothing: what there is now is what the job ends with.
            moment = Moment(self._clock.time_ns(), "observer", skipped=skipped)
        if skipped or kept.detail == "light":
            moment.message = message
            moment.thread_number = threading.get_ident()
            moment.lines = lines
            kept = self._report(moment, "full", ("written as the exception ended the job",))
        data: dict[str, Any] = {"report": kept.moment.id, "message": message}
        self._tell("oom_fatal", kept, "the job ended because memory ran out", data)

    def at_boundary(self, step: int) -> None:
        """A step has ended: what ran out before it did not end the job. Training thread."""
        if not self._open:
            return
        with self._lock:
            recovered = [kept.moment.id for kept in self._open]
            self._open.clear()
        data: dict[str, Any] = {"report": recovered[-1], "reports": recovered, "step": step}
        time_ns = self._clock.time_ns()
        self._emit(Event(0, time_ns, "oom_recovered", step, "went on after memory ran out", data))

    def poll(self) -> None:
        """Tell of a burst when it is over. Sampler thread."""
        if self._has_news and self._monotonic_s() - self._last_s >= QUIET_S:
            self.settle()

    def settle(self) -> None:
        """Deliver the light reports that were kept back, and tell how many there were."""
        with self._lock:
            self._has_news = False
            light = list(self._light)
            self._light.clear()
            skipped = self._burst.take_skipped()
        for kept in light:
            self._deliver(kept)
        if light or skipped:
            told = {} if not light else dict(light[-1].told)
            told["skipped"] = skipped + sum(each.moment.skipped for each in light)
            told["times"] = told["skipped"] + len(light)
            text = f"ran out of memory {told['times']} more times in a row"
            step = light[-1].step if light else None
            self._emit(Event(0, self._clock.time_ns(), "oom", step, text, told))

    def _report(self, moment: Moment, detail: Detail, notes: tuple[str, ...] = ()) -> _Kept:
        # It would free what only waits for it, and so what is to be seen, in the middle of this.
        with no_collection():
            return self._report_now(moment, detail, notes)

    def _report_now(self, moment: Moment, detail: Detail, notes: tuple[str, ...]) -> _Kept:
        start_s = time.perf_counter()
        report = self._maker.begin(moment)
        report["notes"] += notes
        kept = _Kept(moment, report, detail)
        if moment.source != "asked":
            self._open.append(kept)
        if detail == "light":
            self._keep_light(kept, report, start_s)
            return kept
        self._write(kept, report, start_s, is_last=False)
        if moment.source in ("observer", "exception"):
            self._sample_now(SAMPLE_S)
        self._maker.complete(report, moment, start_s + COLLECT_S)
        kept.told = _told(report)
        writing = self._write(kept, report, start_s, is_last=True)
        writing.wait(max(WRITE_S, start_s + BUDGET_S - time.perf_counter()))
        if moment.source != "asked":
            self._tell("oom", kept, f"out of memory{_where(report)}", kept.told)
        return kept

    def _keep_light(self, kept: _Kept, report: Report, start_s: float) -> None:
        with self._lock:
            self._light.append(kept)
            dropped = self._light.popleft() if len(self._light) > MAX_LIGHT else None
            if dropped is not None:
                self._burst.skipped += 1 + dropped.moment.skipped
                dropped.is_dropped = True
                # Nobody has heard of it; those that stay wait for the step that follows.
                if dropped in self._open:
                    self._open.remove(dropped)
        if dropped is not None and dropped.file is not None:
            dropped.file.delete()
        self._write(kept, report, start_s, is_last=True).wait(LIGHT_WRITE_S)

    def _write(self, kept: _Kept, report: Report, start_s: float, *, is_last: bool) -> Writing:
        report["took_ms"] = (time.perf_counter() - start_s) * 1e3
        data = encoded(report)
        kept.begin = begin_of(report, data)
        is_full = kept.detail == "full"

        def told(file: ReportFile | None, error: Exception | None) -> None:
            before, kept.file = kept.file, file
            if before is not None:
                before.let_go()
            if kept.is_dropped and file is not None:
                file.delete()
            if error is not None:
                kept.data = data
                kept.told["not_written"] = summary(error)
            if is_full and is_last:
                self._deliver(kept)

        name = file_name(kept.moment.time_ns, report["rank"])
        writing = Writing(name, data, sync=is_full, told=told)
        self._writer.write(writing)
        return writing

    def _deliver(self, kept: _Kept) -> None:
        if kept.is_shipped or kept.begin is None:
            return
        kept.is_shipped = True
        data, kept.data = kept.data, b""
        self._ship(kept.begin, kept.file, data)

    def _tell(self, kind: str, kept: _Kept, text: str, data: dict[str, Any]) -> None:
        time_ns = kept.moment.time_ns if kind == "oom" else self._clock.time_ns()
        self._emit(Event(0, time_ns, kind, kept.step, text, data))


def begin_of(report: Report, data: bytes) -> OomBegin:
    """What is sent before a report.

    Args:
        report: as plain data.
        data: as it is sent.

    Raises:
        KeyError, TypeError, ValueError: it does not say whose it is.
    """
    return OomBegin(
        str(report["id"]),
        str(report["run"]),
        int(report["rank"]),
        int(report["time_ns"]),
        len(data),
        hashlib.sha256(data).hexdigest(),
        step=None if report.get("step") is None else int(report["step"]),
        linked_to=str(report.get("linked_to") or ""),
        proof=str(report.get("proof") or "")[:64],
    )


_TOLD: Final = (
    "source",
    "request_bytes",
    "segment_bytes",
    "allowed_bytes",
    "device_free_bytes",
    "part",
    "phase",
    "thread",
    "skipped",
    "detail",
)


def _told(report: Report) -> dict[str, Any]:
    return {"report": report["id"], **{name: report[name] for name in _TOLD}}


def _where(report: Report) -> str:
    phase, part = report["phase"], report["part"]
    if part:
        return f" in the {part} pass" if part != "optimizer" else " in the optimizer's step"
    return f" in {phase}" if phase else ""
