"""The agent: owns the parts, starts them in order and stops them against a deadline."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from vramscope.config import Config
from vramscope.guard import guarded
from vramscope.identity import Identity
from vramscope.lifecycle import Ending
from vramscope.local.target_finder import TargetFinder
from vramscope.notices import Notices, is_stderr_saved
from vramscope.observer import Observer
from vramscope.outbox.losses import Losses
from vramscope.outbox.outbox import Outbox
from vramscope.outbox.spool import Spool, remove_stale_spools
from vramscope.phases.stretches import Source
from vramscope.sampling.clock import Clock
from vramscope.transport.limits import TransportLimits
from vramscope.transport.transport import Target, Transport
from vramscope_protocol.messages import (
    AgentStatus,
    Command,
    DeviceInfo,
    Event,
    Goodbye,
    RankInfo,
    Register,
    RunInfo,
)

_WINDOW_BYTES: Final = 2 << 20
# Of the time to stop: for the sampler's last rows, and for closing the connection.
_SAMPLER_SHARE: Final = 0.3
_CLOSE_SHARE: Final = 0.2
_RENEW_INTERVAL_S: Final = 5.0
_NOTEBOOK_EXTENSION: Final = "vramscope.notebook.extension"


class Agent:
    """Watches this process for one stream; started and stopped once.

    Args:
        config: options.
        identity: who this process is.
        observe: makes the part that reads the device; replaced in tests.
    """

    def __init__(
        self,
        config: Config,
        identity: Identity,
        observe: Callable[..., Observer] = Observer,
    ) -> None:
        self.config = config
        self.identity = identity
        self.notices = Notices()
        self._clock = Clock()
        self._state_lock = threading.Lock()
        self._is_started = False
        self._is_stopped = False
        self._cancelled = threading.Event()
        self._welcome = threading.Event()
        self._server: Target | None = None
        self._told: tuple[list[DeviceInfo], dict[str, str]] | None = None
        self._renew_after_s = 0.0
        losses = Losses()
        spool = Spool(config.spool_dir, identity.stream, config.spool_bytes, losses)
        self.outbox = Outbox(
            config.outbox_bytes, spool if config.spool_bytes else None, losses, self.notices
        )
        self._targets = TargetFinder(config, self.notices, self._cancelled)
        self.transport = Transport(
            self.outbox,
            self._targets.find,
            self._register,
            self._submit,
            self.notices,
            on_welcome=self._welcomed,
            limits=TransportLimits(window_bytes=min(_WINDOW_BYTES, config.outbox_bytes // 4)),
        )
        self.observer = observe(
            config,
            identity,
            outbox=self.outbox,
            notices=self.notices,
            clock=self._clock,
            offer_status=self._offer_status,
            other_cpu_ns=self.transport.cpu_ns,
            on_device_change=self._device_changed,
        )

    def start(self) -> None:
        """Start to watch. A second call does nothing."""
        with self._state_lock:
            if self._is_started:
                return
            self._is_started = True
        self._emit("attach", f"attached to process {self.identity.pid}")
        self.observer.start()
        self.transport.start()

    def stop(self, reason: Ending | None = None, timeout_s: float | None = None) -> bool:
        """Send what is left and a goodbye, within a deadline. A second call does nothing.

        Args:
            reason: how the process ends; ``None`` when it goes on without the agent.
            timeout_s: deadline; the option ``exit_timeout_s`` by default.

        Returns:
            Whether everything was delivered.
        """
        with self._state_lock:
            if self._is_stopped or not self._is_started:
                return True
            self._is_stopped = True
        total_s = self.config.exit_timeout_s if timeout_s is None else timeout_s
        deadline_s = time.monotonic() + total_s
        self._cancelled.set()
        with guarded("stop"):
            self.observer.stop(total_s * _SAMPLER_SHARE)
        self.outbox.put(self._goodbye(reason))
        left_s = deadline_s - time.monotonic()
        is_delivered = self.transport.flush(left_s - total_s * _CLOSE_SHARE)
        self.transport.stop(deadline_s - time.monotonic())
        with guarded("spool"):
            self.outbox.remove_spool(deadline_s - time.monotonic())
        if not is_delivered:
            self.notices.say(
                "undelivered",
                "not everything could be delivered before the end: "
                "no server acknowledged it in time",
            )
        return is_delivered

    def forget_after_fork(self) -> None:
        """In a forked child: let go of everything, take no lock, tell nobody."""
        self._is_stopped = True
        self.observer.forget_after_fork()
        self.transport.forget_after_fork()
        self.outbox.forget_after_fork()

    def mark_step(self) -> None:
        """The training loop says that an optimizer step ended."""
        self.observer.mark_step()

    def mark_framework_step(self) -> None:
        """A framework's callback says that an optimizer step ended."""
        self.observer.mark_framework_step()

    def begin_phase(self, name: str, source: Source) -> Callable[[], None]:
        """Enter a phase; what is returned leaves it."""
        return self.observer.begin_phase(name, source)

    def log(self, values: Mapping[str, object]) -> None:
        """Values of the user for the current step."""
        self.observer.log(values)

    def wait_for_server(self, timeout_s: float) -> Target | None:
        """The server that has taken this stream; ``None`` when there is none by then."""
        self._welcome.wait(timeout_s)
        return self._server

    def page_url(self) -> str | None:
        """Address of this run's page; with the token where the server is this user's own."""
        server = self._server
        path = f"/runs/{self.identity.run_id}"
        return self._targets.page_url(server, path) if server is not None else None

    def _offer_status(self, status: AgentStatus) -> None:
        """About once a second, on the sampler thread."""
        self.transport.offer_status(status)
        # Torch is imported, and CUDA set up, long after the process has registered. A few seconds
        # apart: the two come shortly after each other.
        now_s = time.monotonic()
        if now_s >= self._renew_after_s and self._told not in (None, self._facts()):
            self._renew_after_s = now_s + _RENEW_INTERVAL_S
            self.transport.renew()

    def _facts(self) -> tuple[list[DeviceInfo], dict[str, str]]:
        """What a registration tells that may change later."""
        return self.observer.devices(), {**self.identity.software, **self.observer.software()}

    def _submit(self, command: Command) -> None:
        self.observer.submit(command)

    def _register(self) -> Register:
        identity = self.identity
        # Late on purpose, on the transport thread: it reads the disk.
        remove_stale_spools(os.fspath(self.config.spool_dir))
        self._told = devices, software = self._facts()
        run = RunInfo(
            identity.run_id,
            identity.run_name,
            identity.world_size,
            self.config.emulate,
            identity.user,
            identity.script,
        )
        rank = RankInfo(
            identity.rank,
            identity.host,
            identity.pid,
            identity.local_rank,
            identity.started_ns,
            devices,
            software,
            self.config.allow,
            self.observer.commands(),
        )
        return Register(identity.stream, run, rank, self.outbox.first_seq)

    def _welcomed(self, target: Target) -> None:
        self.notices.clear("no-server")
        self._server = target
        self._welcome.set()
        if self.identity.rank != 0:
            return
        if is_stderr_saved():
            # No token: what a cell writes is saved in the notebook, and notebooks are passed on.
            # Who has loaded the extension sees the page itself.
            if _NOTEBOOK_EXTENSION not in sys.modules:
                url = target.address.http_url
                text = f"dashboard: {url}; %load_ext vramscope and %vramscope show it here"
                self.notices.say("dashboard", text)
        else:
            self.notices.say("dashboard", f"dashboard: {self._targets.page_url(target)}")

    def _device_changed(self, device: DeviceInfo) -> None:
        self._emit(
            "device",
            f"uses {device.name or 'a device'}",
            {
                "device": msgspec.to_builtins(device),
                "software": self._facts()[1],
            },
        )

    def _emit(self, kind: str, text: str, data: dict[str, object] | None = None) -> None:
        self.outbox.put(Event(0, self._clock.time_ns(), kind, None, text, data or {}))

    def _goodbye(self, ending: Ending | None) -> Goodbye:
        time_ns = self._clock.time_ns()
        if ending is None:
            return Goodbye(0, time_ns, "detach")
        return Goodbye(0, time_ns, ending.reason, ending.exit_code, ending.text)
