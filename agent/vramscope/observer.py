"""The part of the agent that looks: device, collectors, sampler, steps and commands, wired."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from vramscope.batching.resize import resize_handlers
from vramscope.collectors.allocator import AllocatorCounters
from vramscope.collectors.allocator_settings import AllocatorSettings
from vramscope.collectors.amd_smi import AmdSmiLibrary, AmdSmiMonitor
from vramscope.collectors.device_processes import DeviceProcesses
from vramscope.collectors.driver import Driver
from vramscope.collectors.garbage_collection import GarbageCollection
from vramscope.collectors.host import HostCollector
from vramscope.collectors.nvml import NvmlMonitor
from vramscope.collectors.nvml_library import NvmlLibrary
from vramscope.collectors.outside import Outside
from vramscope.collectors.process_listing import ProcessListing
from vramscope.collectors.self_cost import SelfCost
from vramscope.commands.acting import acting_handlers
from vramscope.commands.modules import module_handlers
from vramscope.commands.part import CommandPart
from vramscope.config import Config
from vramscope.devices.accelerator import MTIA, OTHER, XPU, AcceleratorDevice
from vramscope.devices.caching_allocator import Stats
from vramscope.devices.cuda import CudaDevice
from vramscope.devices.device import Device, DeviceMemory
from vramscope.devices.further_devices import FurtherDevices
from vramscope.devices.in_use import DeviceInUse
from vramscope.devices.mps import MpsDevice
from vramscope.growth.explain import growth_handlers
from vramscope.growth.optimizers_in_use import OptimizersInUse
from vramscope.guard import guarded
from vramscope.history.part import HistoryPart
from vramscope.identity.identity import Identity
from vramscope.memory_map.map_feed import MapFeed
from vramscope.memory_map.memory_map import MemoryMap
from vramscope.modules.module_account import Reading
from vramscope.notices import Notices
from vramscope.oom.last_told import LastTold
from vramscope.oom.part import OomPart
from vramscope.outbox.current_outbox import CurrentOutbox
from vramscope.peaks.cuda_peaks import CudaPeaks
from vramscope.peaks.peak_counters import PeakCounters
from vramscope.peaks.peaks import Peaks
from vramscope.phases.phases import Phases
from vramscope.phases.stretches import Source
from vramscope.sampling.clock import Clock
from vramscope.sampling.sampler import Sampler
from vramscope.steps.at_boundary import AtBoundary
from vramscope.steps.tracker import StepTracker
from vramscope.tensors.module_paths import roots_of
from vramscope.tensors.modules import Modules
from vramscope.tensors.tensor_account import TensorAccount
from vramscope.transport.snapshot_lane import Shipment
from vramscope_protocol.messages import AgentStatus, Command, Decision, DeviceInfo

_SAMPLE_AFTER_COMMAND_S: Final = 0.05
"""How long the training thread waits for the sample that shows what a command did."""


class Observer:
    """Reads one device into the outbox and runs commands on it.

    Args:
        config: options.
        identity: who this process is.
        outbox: where rows, receipts and events go.
        notices: where it is noted what is degraded.
        clock: times of this stream.
        offer_status: takes the once-a-second status.
        other_cpu_ns: CPU time of the transport, for the cost budget.
        on_device_change: told when the job uses another device than was expected.
        ship: takes a snapshot to be delivered; any thread.
        current_identity: who it is now, which may change once.
    """

    def __init__(
        self,
        config: Config,
        identity: Identity,
        *,
        outbox: CurrentOutbox,
        notices: Notices,
        clock: Clock,
        offer_status: Callable[[AgentStatus], None],
        other_cpu_ns: Callable[[], int],
        on_device_change: Callable[[DeviceInfo], None],
        ship: Callable[[Shipment], object],
        current_identity: Callable[[], Identity] | None = None,
    ) -> None:
        self._software = _torch_version
        # Before anything here imports torch: modules may have been built if it is there already.
        modules = Modules()
        self._closers: list[Callable[[], object]] = []
        self._close_library: Callable[[], object] | None = None
        self._peak_counters: PeakCounters
        self._steps: StepTracker
        on_boundary: Callable[[], None] | None = None
        self._further: FurtherDevices | None = None
        optimizers = OptimizersInUse(lambda: self._steps.step)
        optimizer_listeners: list[Callable[[Any], None]] = []
        if config.explain_growth:
            optimizer_listeners.append(optimizers.saw_optimizer)
        self_cost = SelfCost(other_cpu_ns)
        listing: Callable[[], ProcessListing] = ProcessListing
        if config.emulate:
            # Here and not above: it imports torch.
            from vramscope.emulation import start_emulation
            from vramscope.emulation.peaks import EmulatedPeaks

            emulation = start_emulation(config.capacity_bytes, notices, on_device_change)
            self._device: Device = emulation.device
            self._peak_counters = EmulatedPeaks(emulation.device)
            self._closers.append(emulation.stop)
        else:
            library = NvmlLibrary(notices, released=self_cost.released)
            amd = AmdSmiLibrary(notices, released=self_cost.released)

            def driver() -> Driver:
                return Driver(
                    NvmlMonitor(library, clock, os.environ), AmdSmiMonitor(amd, clock, os.environ)
                )

            nvml = driver()
            device = CudaDevice(
                nvml, notices, local_rank=identity.local_rank, on_change=on_device_change
            )
            mps = MpsDevice(notices, on_device_change)
            others = [
                AcceleratorDevice(
                    backend, notices, local_rank=identity.local_rank, on_change=on_device_change
                )
                for backend in (XPU, MTIA, OTHER)
            ]
            in_use = DeviceInUse(device, [*others, mps])
            self._device = in_use
            self._peak_counters = CudaPeaks(device, notices, in_use.memory_stats)
            self._software = device.software
            listing = nvml.last_listing
            self._closers.append(device.remove)
            self._close_library = library.close
            further = FurtherDevices(
                device,
                in_use.follow_current_device,
                clock,
                lambda: NvmlMonitor(library, clock, os.environ),
            )
            self._further = further
            on_boundary = further.at_boundary
            if sys.platform == "darwin":
                optimizer_listeners.append(mps.saw_optimizer)
        counters = AllocatorCounters(config.fields)
        self._garbage = GarbageCollection()
        self._map = MemoryMap(
            self._device,
            clock=clock,
            notices=notices,
            self_cost=self_cost,
            current_step=lambda: self._steps.step,
        )
        self._history = HistoryPart(
            config,
            identity.stream,
            self._device,
            clock=clock,
            emit=outbox.put,
            ship=ship,
            self_cost=self_cost,
        )
        self._oom = OomPart(
            config,
            self._device,
            outbox=outbox,
            notices=notices,
            clock=clock,
            ship=ship,
            identity=current_identity or (lambda: identity),
            step=lambda: self._steps.step,
            phase=lambda: self._phases.name(),
            software=self.software,
            tensors=lambda: self._tensors,
            samples=lambda: self._sampler,
            steps=lambda: self._steps,
            settings=lambda: self._settings.text(),
        )
        self._commands = CommandPart(
            config,
            self._device,
            {
                **self._map.handlers(),
                **resize_handlers(self._device, lambda: self._steps, self._closers),
                **self._history.handlers(),
                **self._oom.handlers(),
                **growth_handlers(
                    self._device,
                    self._history.history,
                    self_cost.add_hook_ns,
                    optimizers if config.explain_growth else None,
                    lambda: self._sampler.wake(),
                ),
                **module_handlers(self._reading, lambda: roots_of(modules.alive())),
                **acting_handlers(
                    self._device, lambda: (self._settings, self._sampler, self._tensors)
                ),
            },
            clock=clock,
            emit=outbox.put,
            step=lambda: self._steps.step,
            on_change=lambda: self._sampler.sample_now(_SAMPLE_AFTER_COMMAND_S),
        )
        self.stop_command, self.allowance = self._commands.stop, self._commands.allowance
        self._peaks: Peaks | None = None
        if config.peaks:
            self._peaks = Peaks(self._peak_counters, config.parts_budget, self_cost.add_hook_ns)
        self._phases = Phases(clock, outbox.put, notices)
        self._steps = StepTracker(
            self._device,
            counters,
            outbox,
            clock=clock,
            notices=notices,
            self_cost=self_cost,
            phases=self._phases,
            run_commands=AtBoundary(
                (self._history, self._oom, self._commands, self._map),
                self._commands.stop.raise_if_due,
                clock,
            ),
            on_boundary=on_boundary,
            peaks=None if self._peaks is None else self._peaks.steps,
        )
        if self._peaks is not None:
            self._phases.peaks = self._peaks.of_phases(self._steps.is_training_thread)
        self._tensors = TensorAccount(
            self._device.storage,
            modules,
            current_step=lambda: self._steps.step,
            clock=clock,
            emit=outbox.put,
            self_cost=self_cost,
        )
        self._map.owners = self._tensors.owners
        for listener in (*optimizer_listeners, self._tensors.saw_optimizer):
            self._steps.listen_optimizer(listener)
        self._steps.listen_backward(self._tensors.backward_began, self._tensors.wants_backward)
        self._steps.add_columns(self._tensors)
        self._steps.add_columns(self._history.columns())
        processes = DeviceProcesses(
            listing, clock=clock, emit=outbox.put, current_step=lambda: self._steps.step
        )
        outside = Outside(
            listing, clock=clock, emit=outbox.put, current_step=lambda: self._steps.step
        )
        self._settings = AllocatorSettings(
            clock, outbox.put, lambda: self._steps.step, emulated=config.emulate
        )
        self._oom.processes = LastTold(processes.read)
        self._oom.outside = LastTold(outside.read)
        self._sampler = Sampler(
            self._device,
            counters,
            outbox,
            clock=clock,
            steps=self._steps,
            phases=self._phases,
            commands=self._commands.queue,
            collectors=(
                HostCollector(clock, self_cost.released),
                self._garbage,
                self._settings,
                self._map,
                *([] if self._further is None else [self._further]),
            ),
            memory_map=self._map,
            on_memory=self._on_memory,
            self_cost=self_cost,
            notices=notices,
            offer_status=offer_status,
            processes=self._oom.processes,
            outside=self._oom.outside,
            rate_hz=config.rate_hz,
            cost_budget=config.cost_budget,
        )

    def start(self) -> None:
        """Install the step hooks and start to sample."""
        self._tensors.install()
        self._steps.install()
        self._garbage.install()
        self._oom.install()
        self._sampler.start()

    def stop(self, timeout_s: float) -> None:
        """Stop sampling, put the last rows into the outbox and leave PyTorch as it was."""
        with guarded("out of memory reports"):
            self._oom.close(timeout_s)
        # Hooks first: a step that ended after the sampler's last flush would lose its row.
        self._steps.remove()
        self._tensors.remove()
        if self._peaks is not None:
            self._peaks.remove()
        self._garbage.remove()
        self._settings.remove()
        has_ended = self._sampler.stop(timeout_s)
        if has_ended:
            with guarded("phases"):
                self._phases.close()
        # First: the snapshot that a command waits for may be done within the time that is left.
        self._history.close(timeout_s)
        self._commands.close("the process ended")
        for close in self._closers:
            close()
        # Never under a call that hangs, with a driver in trouble: NVML would wait for it.
        if has_ended and self._close_library is not None:
            self._close_library()

    def submit(self, message: Command | Decision) -> None:
        """Queue a command of the server, or take its decision on one."""
        self._commands.take(message)
        self._sampler.wake()

    def commands(self) -> list[str]:
        """Names of the commands that would be run."""
        return self._commands.queue.accepted()

    def devices(self) -> list[DeviceInfo]:
        """The device that is watched, then others in use, as far as they are known now."""
        further = [] if self._further is None else self._further.infos
        return [self._device.info, *further]

    def software(self) -> dict[str, str]:
        """Versions of torch, CUDA and driver, as far as they are known now."""
        return self._software()

    def open_map(self) -> MapFeed:
        """Frames of the memory map for one more connection."""
        return MapFeed(self._map, lambda: "watch_map" in self._commands.queue.accepted())

    @property
    def counts_alike(self) -> bool:
        """Whether a step is the same step on all ranks that have counted from the start."""
        return self._steps.counts_alike

    def mark_step(self) -> None:
        """An optimizer step ended, says the training loop."""
        self._steps.mark_step()

    def mark_framework_step(self) -> None:
        """An optimizer step ended, says a framework."""
        self._steps.mark_framework_step()

    def begin_phase(self, name: str, source: Source) -> Callable[[], None]:
        """Enter a phase; what is returned leaves it."""
        stretch = self._phases.begin(name, source)
        return lambda: self._phases.end(stretch)

    def log(self, values: Mapping[str, object]) -> None:
        """Numbers of the user for the current step."""
        self._steps.log(values)

    def _reading(self, in_backward: bool) -> Reading | None:
        """Memory at the border of a module."""
        found = None if self._peaks is None else self._peaks.reading(in_backward=in_backward)
        return None if found is None else Reading(*found)

    def forget_after_fork(self) -> None:
        """In a forked child: make the hooks harmless, without a lock."""
        self._steps.forget_after_fork()
        self._tensors.forget_after_fork()
        if self._peaks is not None:
            self._peaks.forget_after_fork()
        self._garbage.forget_after_fork()
        self._settings.forget_after_fork()
        self._history.forget_after_fork()
        self._oom.forget_after_fork()

    def ship_left_reports(self) -> None:
        """Deliver what processes that were killed have left on this machine. Transport thread."""
        self._oom.ship_left()

    def remove_files(self) -> None:
        """Delete the snapshots that were not delivered."""
        self._history.remove_files()

    def _on_memory(self, stats: Stats | None, memory: DeviceMemory) -> None:
        """What was just sampled. Sampler thread."""
        self._history.look(stats, memory)
        self._oom.look(stats)


def _torch_version() -> dict[str, str]:
    version = getattr(sys.modules.get("torch"), "__version__", None)
    return {} if version is None else {"torch": str(version)}
