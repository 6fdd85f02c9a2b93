"""The part of the agent that looks: device, collectors, sampler, steps and commands, wired."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Final

from vramscope.collectors.allocator import AllocatorCounters
from vramscope.collectors.garbage_collection import GarbageCollection
from vramscope.collectors.host import HostCollector
from vramscope.collectors.nvml import NvmlMonitor
from vramscope.collectors.nvml_library import NvmlLibrary
from vramscope.collectors.self_cost import SelfCost
from vramscope.commands.handlers import CommandHandlers
from vramscope.commands.queue import CommandQueue
from vramscope.config import Config
from vramscope.devices.cuda import CudaDevice
from vramscope.devices.device import Device
from vramscope.guard import guarded
from vramscope.identity.identity import Identity
from vramscope.notices import Notices
from vramscope.outbox.current_outbox import CurrentOutbox
from vramscope.phases.phases import Phases
from vramscope.phases.stretches import Source
from vramscope.sampling.clock import Clock
from vramscope.sampling.sampler import Sampler
from vramscope.steps.tracker import StepTracker
from vramscope_protocol.messages import AgentStatus, Command, DeviceInfo

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
    ) -> None:
        self._software = _torch_version
        self._closers: list[Callable[[], object]] = []
        self._close_library: Callable[[], object] | None = None
        on_boundary: Callable[[], None] | None = None
        self_cost = SelfCost(other_cpu_ns)
        if config.emulate:
            self._device = self._emulated_device(config.capacity_bytes, notices, on_device_change)
        else:
            library = NvmlLibrary(notices, released=self_cost.released)
            nvml = NvmlMonitor(library, clock, os.environ)
            device = CudaDevice(
                nvml, notices, local_rank=identity.local_rank, on_change=on_device_change
            )
            self._device = device
            self._software = device.software
            self._closers.append(device.remove)
            self._close_library = library.close
            on_boundary = device.follow_current_device
        counters = AllocatorCounters(config.fields)
        self._garbage = GarbageCollection()
        self._commands = CommandQueue(
            CommandHandlers(self._device),
            clock=clock,
            emit=outbox.put,
            allow=config.allow,
            allow_commands=config.allow_commands,
            on_change=lambda: self._sampler.sample_now(_SAMPLE_AFTER_COMMAND_S),
        )
        self._phases = Phases(clock, outbox.put, notices)
        self._steps = StepTracker(
            self._device,
            counters,
            outbox,
            clock=clock,
            notices=notices,
            self_cost=self_cost,
            phases=self._phases,
            run_commands=self._commands.run_at_boundary,
            on_boundary=on_boundary,
        )
        self._sampler = Sampler(
            self._device,
            counters,
            outbox,
            clock=clock,
            steps=self._steps,
            phases=self._phases,
            commands=self._commands,
            collectors=(HostCollector(clock, self_cost.released), self._garbage),
            self_cost=self_cost,
            notices=notices,
            offer_status=offer_status,
            rate_hz=config.rate_hz,
            cost_budget=config.cost_budget,
        )

    def start(self) -> None:
        """Install the step hooks and start to sample."""
        self._steps.install()
        self._garbage.install()
        self._sampler.start()

    def stop(self, timeout_s: float) -> None:
        """Stop sampling, put the last rows into the outbox and leave PyTorch as it was."""
        # Hooks first: a step that ended after the sampler's last flush would lose its row.
        self._steps.remove()
        self._garbage.remove()
        has_ended = self._sampler.stop(timeout_s)
        if has_ended:
            with guarded("phases"):
                self._phases.close()
        self._commands.close("the process ended before the command could run")
        for close in self._closers:
            close()
        # Never under a call that hangs, with a driver in trouble: NVML would wait for it.
        if has_ended and self._close_library is not None:
            self._close_library()

    def submit(self, command: Command) -> None:
        """Queue a command of the server."""
        self._commands.submit(command)

    def commands(self) -> list[str]:
        """Names of the commands that would be run."""
        return self._commands.accepted()

    def devices(self) -> list[DeviceInfo]:
        """The device that is watched, as far as it is known now."""
        return [self._device.info]

    def software(self) -> dict[str, str]:
        """Versions of torch, CUDA and driver, as far as they are known now."""
        return self._software()

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

    def forget_after_fork(self) -> None:
        """In a forked child: make the hooks harmless, without a lock."""
        self._steps.forget_after_fork()
        self._garbage.forget_after_fork()

    def _emulated_device(
        self, capacity_bytes: int, notices: Notices, on_change: Callable[[DeviceInfo], None]
    ) -> Device:
        # Here and not above: it imports torch.
        from vramscope.emulation import start_emulation

        emulation = start_emulation(capacity_bytes, notices, on_change)
        self._closers.append(emulation.stop)
        return emulation.device


def _torch_version() -> dict[str, str]:
    version = getattr(sys.modules.get("torch"), "__version__", None)
    return {} if version is None else {"torch": str(version)}
