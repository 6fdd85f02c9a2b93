"""The part of the agent that is about running out of memory: its pieces, wired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from vramscope.batching.loader_watch import LoaderWatch
from vramscope.commands.call import Handler
from vramscope.config import Config
from vramscope.devices.caching_allocator import Stats
from vramscope.devices.device import Device
from vramscope.guard import guarded
from vramscope.identity.identity import Identity
from vramscope.notices import Notices
from vramscope.oom import trampoline
from vramscope.oom.attaching import Attaching
from vramscope.oom.counter_watch import CounterWatch
from vramscope.oom.device_readings import DeviceReadings
from vramscope.oom.exception_hooks import ExceptionHooks
from vramscope.oom.last_told import LastTold
from vramscope.oom.left_reports import ship_left
from vramscope.oom.oom_command import oom_handlers
from vramscope.oom.oom_observer import OomObserver
from vramscope.oom.out_of_memory_error import message_of, place_of
from vramscope.oom.recent_rows import MAX_SAMPLES, MAX_STEPS, SAMPLES_NS, RecentRows
from vramscope.oom.report import ReportMaker, Sources
from vramscope.oom.report_folder import ReportFile, ReportFolder
from vramscope.oom.report_writer import ReportWriter
from vramscope.oom.thread_stacks import traceback_lines
from vramscope.outbox.current_outbox import CurrentOutbox
from vramscope.sampling.clock import Clock
from vramscope.sampling.rows import Row
from vramscope.tensors.tensor_account import TensorAccount
from vramscope.transport.snapshot_lane import Shipment
from vramscope_protocol.account import MemoryPart, ProcessMemory
from vramscope_protocol.messages import Batch, BatchKind, OomBegin


class RowSource(Protocol):
    """Where rows wait until they are sent."""

    def waiting_rows(self) -> list[Row]:
        """Rows that were not sent yet."""
        ...


class Samples(RowSource, Protocol):
    """What is asked of the sampler."""

    def sample_now(self, timeout_s: float) -> bool:
        """Have a sample taken at once."""
        ...


class Steps(RowSource, Protocol):
    """What is asked of the tracker of steps."""

    loaders: LoaderWatch


class OomPart:
    """Sees that memory runs out, and has it written down.

    What is called for is made after this part: commands have to know theirs from the beginning.

    Args:
        config: options.
        device: the watched one.
        outbox: takes events; its rows are what reports have of the last minute.
        notices: told of what is degraded.
        clock: times of this stream.
        ship: takes a report to be delivered; any thread.
        identity: who this process is now.
        step: steps finished so far.
        phase: name of the phase.
        software: versions by name.
        tensors: the account of tensors.
        samples, steps: where rows wait.
        settings: the allocator's settings as one string.
    """

    def __init__(
        self,
        config: Config,
        device: Device,
        *,
        outbox: CurrentOutbox,
        notices: Notices,
        clock: Clock,
        ship: Callable[[Shipment], object],
        identity: Callable[[], Identity],
        step: Callable[[], int],
        phase: Callable[[], str],
        software: Callable[[], dict[str, str]],
        tensors: Callable[[], TensorAccount],
        samples: Callable[[], Samples],
        steps: Callable[[], Steps],
        settings: Callable[[], str | None],
    ) -> None:
        self._is_on = config.oom_reports
        self._folder = ReportFolder(config.spool_dir)
        self._writer = ReportWriter(self._folder)
        self._ship_any = ship
        self.processes = LastTold(list[ProcessMemory])
        """The processes on the device, as they were told last; set by whoever reads them."""
        self.outside = LastTold(list[MemoryPart])
        """What this process holds outside of PyTorch, likewise."""
        self._rows: dict[BatchKind, RecentRows] = {
            "sample": RecentRows(
                lambda: outbox.tables,
                lambda: samples().waiting_rows(),
                max_age_ns=SAMPLES_NS,
                max_rows=MAX_SAMPLES,
            ),
            "step": RecentRows(
                lambda: outbox.tables,
                lambda: steps().waiting_rows(),
                max_age_ns=None,
                max_rows=MAX_STEPS,
            ),
        }
        if self._is_on:
            outbox.on_batch = self._take_batch
        sources = Sources(
            identity,
            DeviceReadings(device, emulated=config.emulate),
            step,
            phase,
            tensors,
            self._rows["sample"],
            self._rows["step"],
            settings,
            software,
            lambda: self.processes.value,
            lambda: self.outside.value,
            config.emulate,
            lambda: steps().loaders.new_sizes,
        )
        self._observer = OomObserver(
            ReportMaker(sources),
            self._writer,
            clock=clock,
            emit=outbox.put,
            ship=self._ship,
            sample_now=lambda timeout_s: samples().sample_now(timeout_s),
        )
        self._take: Any = self._observer.out_of_memory
        self._attaching = Attaching(notices, emulated=config.emulate)
        self._hooks = ExceptionHooks(self._saw_exception)
        self._counters = CounterWatch()

    def handlers(self) -> dict[str, Handler]:
        """The command that other ranks' troubles bring."""
        return oom_handlers(self._observer.asked) if self._is_on else {}

    def install(self) -> None:
        """Be told from now on, or as soon as the job has set its device up."""
        if not self._is_on:
            return
        trampoline.switch_on(self._take)
        with guarded("out of memory observer"):
            self._attaching.install()
        self._hooks.install()

    def ship_left(self) -> None:
        """Deliver what killed processes have left here. Transport thread: it reads the disk."""
        if self._is_on:
            with guarded("left reports"):
                ship_left(self._folder, self._ship)

    def look(self, stats: Stats | None) -> None:
        """Compare what was just sampled. Sampler thread."""
        if not self._is_on:
            return
        with guarded("out of memory counters"):
            words = self._counters.rise(stats, is_told=self._attaching.is_attached)
            if words is not None:
                self._observer.noticed("counter", words, None)
            self._observer.poll()

    @property
    def wanted(self) -> tuple[object, ...]:
        """What is not empty when memory ran out, and it is to be told that the job went on."""
        return (self._observer.open,)

    @property
    def goes_on(self) -> bool:
        """Whether there is more to do than that: not at each end of a step."""
        return False

    def at_boundary(self, step: int) -> None:
        """A step has ended. Training thread."""
        if not self._is_on:
            return
        with guarded("out of memory observer"):
            self._attaching.at_boundary()
            self._observer.at_boundary(step)

    def close(self, timeout_s: float) -> None:
        """Be told no more, and hand over what was kept back, as far as the time goes."""
        trampoline.switch_off(self._take)
        self._attaching.remove()
        self._hooks.remove()
        with guarded("out of memory reports"):
            self._observer.settle()
            self._writer.close(timeout_s)

    def forget_after_fork(self) -> None:
        """In a forked child: nothing runs out here, and the files are the parent's."""
        trampoline.switch_off(self._take)
        self._attaching.forget_after_fork()
        self._hooks.forget_after_fork()
        self._writer.forget_after_fork()
        self._folder.forget_after_fork()

    def _take_batch(self, batch: Batch) -> None:
        with guarded("recent rows"):
            self._rows[batch.kind].take(batch)

    def _saw_exception(self, error: BaseException, is_end: bool) -> None:
        place = place_of(error)
        if place is None:
            return
        message, lines = message_of(error), traceback_lines(error)
        if place == "host" or not self._observer.has_open:
            self._observer.noticed("exception" if place == "device" else "host", message, lines)
        if is_end:
            self._observer.ended_by(message, lines)

    def _ship(self, begin: OomBegin, file: ReportFile | None, data: bytes) -> None:
        def over(reason: str) -> None:
            if file is None:
                return
            if reason:
                file.let_go()
            else:
                file.delete()

        path = "" if file is None else file.path
        self._ship_any(Shipment(begin, path, data=data, over=over))
