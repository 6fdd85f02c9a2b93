"""The agent: owns the parts, starts them in order and stops them against a deadline."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from vramscope.commands.stop import Stop
from vramscope.commands.user import DECLARED
from vramscope.config import Config
from vramscope.delivery import Delivery
from vramscope.guard import guarded
from vramscope.identity.identity import Identity
from vramscope.identity.launch_key import parent_pid
from vramscope.identity.seat import claim_seat, is_seat_claimed
from vramscope.identity.source import IdentitySource
from vramscope.lifecycle import Ending
from vramscope.local.target_finder import TargetFinder
from vramscope.notices import Notices, is_stderr_saved
from vramscope.observer import Observer
from vramscope.outbox.current_outbox import CurrentOutbox
from vramscope.outbox.losses import SNAPSHOT_LOST
from vramscope.outbox.spool import remove_stale_spools
from vramscope.phases.stretches import Source
from vramscope.registration import Facts, registration
from vramscope.sampling.clock import Clock
from vramscope.transport.snapshot_lane import Shipment, SnapshotLane
from vramscope.transport.transport import Target
from vramscope_protocol.messages import (
    AgentStatus,
    Command,
    Decision,
    DeviceInfo,
    Event,
    Goodbye,
    OomBegin,
    Register,
    Welcome,
)

# Of what is left of it then: for snapshots that are on their way.
_SNAPSHOTS_SHARE: Final = 0.5
# Of the time to stop: for the sampler's last rows.
_SAMPLER_SHARE: Final = 0.3
_RENEW_INTERVAL_S: Final = 5.0
_SUPERSEDED: Final = "its own processes are the ranks of this run"
_NOTEBOOK_EXTENSION: Final = "vramscope.notebook.extension"


class Agent:
    """Watches this process; started and stopped once.

    Args:
        config: options.
        identities: who this process is, as far as it is known.
        observe: makes the part that reads the device; replaced in tests.
        on_superseded: called with the reason, on a thread of its own, when a process that this
            one started turns out to be the rank that this one seemed to be.
        is_late: whether training may have begun already, unlike on other ranks.
    """

    def __init__(
        self,
        config: Config,
        identities: IdentitySource,
        observe: Callable[..., Observer] = Observer,
        on_superseded: Callable[[str], object] | None = None,
        *,
        is_late: bool = False,
    ) -> None:
        self.config = config
        self.notices = Notices()
        self._identities = identities
        self._on_superseded = on_superseded
        self._is_late = is_late
        self._clock = Clock()
        self._state_lock = threading.Lock()
        self._is_started = False
        self._is_stopped = False
        self._is_superseded = False
        self._has_claimed_seat = False
        self._cancelled = threading.Event()
        self._welcome = threading.Event()
        self._server: Target | None = None
        self._told: Facts | None = None
        self._renew_after_s = 0.0
        self._targets = TargetFinder(config, self.notices, self._cancelled)
        self.snapshots = SnapshotLane(self._snapshot_over)
        self._delivery = self._new_delivery(identities.identity)
        self.outbox = CurrentOutbox(self._delivery.outbox)
        self._closer: threading.Thread | None = None
        self.observer = observe(
            config,
            identities.identity,
            outbox=self.outbox,
            notices=self.notices,
            clock=self._clock,
            offer_status=self._offer_status,
            other_cpu_ns=lambda: self._delivery.transport.cpu_ns(),
            on_device_change=self._device_changed,
            ship=self.snapshots.add,
            current_identity=lambda: self.identity,
        )

    @property
    def identity(self) -> Identity:
        """Who this process is, as the server is told."""
        return self._delivery.identity

    def start(self) -> None:
        """Start to watch. A second call does nothing."""
        with self._state_lock:
            if self._is_started:
                return
            self._is_started = True
        self._emit("attach", f"attached to process {self.identity.pid}")
        self._identities.start()
        self.observer.start()
        self._delivery.transport.start()

    def stop(
        self, reason: Ending | None = None, timeout_s: float | None = None, *, why: str = ""
    ) -> bool:
        """Send what is left and a goodbye, within a deadline. A second call does nothing.

        Args:
            reason: how the process ends; ``None`` when it goes on without the agent.
            timeout_s: deadline; the option ``exit_timeout_s`` by default.
            why: why it goes on without the agent, in words.

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
        with guarded("identity"):
            self._identities.remove()
        with guarded("successor"):
            if self._has_new_successor():
                reason, why = None, _SUPERSEDED
        with guarded("stop"):
            self.observer.stop(total_s * _SAMPLER_SHARE)
        with self._state_lock:  # not while the process changes over to another stream
            delivery, closer = self._delivery, self._closer
        if self._is_superseded and not delivery.is_registered:
            delivery.abandon()
            return True
        # Before the goodbye, which ends the connection.
        delivery.deliver_snapshots((deadline_s - time.monotonic()) * _SNAPSHOTS_SHARE)
        with guarded("stop"):
            self.observer.remove_files()
        is_delivered = delivery.close(self._goodbye(reason, why), total_s, deadline_s)
        if closer is not None:
            closer.join(max(0.0, deadline_s - time.monotonic()))
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
        self._delivery.forget_after_fork()

    def mark_step(self) -> None:
        """The training loop says that an optimizer step ended."""
        self.observer.mark_step()

    def mark_framework_step(self) -> None:
        """A framework's callback says that an optimizer step ended."""
        self.observer.mark_framework_step()

    @property
    def stop_command(self) -> Stop:
        """What tells the training loop, or its framework, to end."""
        return self.observer.stop_command

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
        if status.account is not None:
            status.account.sent_bytes = self._delivery.transport.sent_bytes()
        self._delivery.transport.offer_status(status)
        if self._identities.has_changed:
            self._take_identity()
        self._look_for_successor()
        # Torch is imported, and CUDA set up, long after the process has registered. A few seconds
        # apart: the two come shortly after each other.
        now_s = time.monotonic()
        if now_s >= self._renew_after_s and self._told not in (None, self._facts()):
            self._renew_after_s = now_s + _RENEW_INTERVAL_S
            self._delivery.transport.renew()

    def _new_delivery(self, identity: Identity) -> Delivery:
        return Delivery(
            self.config,
            identity,
            self.notices,
            find_target=self._find_target,
            register=self._register,
            submit=self._submit,
            welcomed=self._welcomed,
            open_map=lambda: self.observer.open_map(),
            snapshots=self.snapshots,
        )

    def _find_target(self) -> Target | None:
        self._identities.wait()
        # A server takes who comes last for the rank: not this one, once it is none.
        self._look_for_successor()
        return None if self._is_superseded else self._targets.find()

    def _take_identity(self) -> None:
        """``torch.distributed`` has news of this process. Sampler thread."""
        with self._state_lock:
            if self._is_stopped or not self._delivery.is_registered:
                return  # the first registration looks by itself
            before, identity = self.identity, self._identities.renew()
            if (identity.run_id, identity.rank) != (before.run_id, before.rank):
                self._change_over(identity)
            elif identity != before:
                self._delivery.identity = identity
                self._delivery.transport.renew()

    def _change_over(self, identity: Identity) -> None:
        """Go on as another rank, in a stream of its own. State lock held."""
        old = self._delivery
        self._delivery = self._new_delivery(replace(identity, stream=uuid.uuid4().hex))
        self.outbox.switch(self._delivery.outbox)
        text = f"process {identity.pid} is rank {identity.rank} of {identity.world_size}"
        self._emit("attach", text)
        self._delivery.transport.start()
        goodbye = self._goodbye(None, f"{text} of run {identity.run_name}")
        total_s = self.config.exit_timeout_s

        def close() -> None:
            with guarded("change over"):
                old.close(goodbye, total_s, time.monotonic() + total_s)

        self._closer = threading.Thread(target=close, name="vramscope-closer", daemon=True)
        self._closer.start()

    def _look_for_successor(self) -> None:
        if not self._has_new_successor():
            return

        def leave() -> None:
            if self._on_superseded is not None:
                self._on_superseded(_SUPERSEDED)

        # Not here: the thread would wait for itself to end.
        threading.Thread(target=leave, name="vramscope-closer", daemon=True).start()

    def _has_new_successor(self) -> bool:
        """A process that starts ranks is none of them, once one of them has its number; once."""
        may_be = self._on_superseded is not None and not self.identity.launcher
        if not may_be or self._is_superseded or not is_seat_claimed():
            return False
        self._is_superseded = True
        return True

    def _claim_seat(self) -> None:
        """Once: what is said again after the parent has left, nobody takes away."""
        if self._has_claimed_seat:
            return
        with contextlib.suppress(OSError):  # then the parent stays, and is seen to do nothing
            claim_seat(parent_pid() or os.getppid())
            self._has_claimed_seat = True

    def _facts(self) -> Facts:
        """What a registration tells that may change later."""
        return Facts(
            self.observer.devices(),
            {**self.identity.software, **self.observer.software()},
            not self._is_late and self.observer.counts_alike,
            self.observer.commands(),
            DECLARED.forms(),
            self.observer.allowance.allow,
        )

    def _submit(self, message: Command | Decision | Welcome) -> None:
        if isinstance(message, Welcome):
            self.observer.allowance.take(message)
        else:
            self.observer.submit(message)

    def _register(self, delivery: Delivery) -> Register:
        with self._state_lock:
            is_first = not delivery.is_registered
            if is_first:
                delivery.is_registered = True
                if self._identities.has_changed:
                    stream = delivery.identity.stream
                    delivery.identity = replace(self._identities.renew(), stream=stream)
            identity = delivery.identity
        if identity.launcher == "spawn" and identity.rank == 0:
            self._claim_seat()
        # Late on purpose, on the transport thread: it reads the disk.
        remove_stale_spools(os.fspath(self.config.spool_dir))
        if is_first:
            self.observer.ship_left_reports()
        self._told = facts = self._facts()
        return registration(
            identity,
            self.config,
            first_seq=delivery.outbox.first_seq,
            **facts._asdict(),
        )

    def _welcomed(self, target: Target) -> None:
        self.notices.clear("no-server")
        self._server = target
        self._welcome.set()
        if self.identity.rank != 0:
            return
        if self._identities.has_parent:
            return  # which has said it
        if why := self.observer.allowance.why:
            self.notices.say("allow", why)
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
                "software": self._facts().software,
            },
        )

    def _snapshot_over(self, shipment: Shipment, reason: str) -> None:
        """A snapshot was delivered, or is lost. Any thread."""
        if type(shipment.begin) is OomBegin:
            # Of a stranger who left it here, this job's user wants to hear nothing.
            if not reason or shipment.begin.run != self.identity.run_id:
                return
            kept = f": {shipment.path} holds it" if shipment.path else ""
            text = f"the report of running out of memory was not delivered ({reason}){kept}"
            self.notices.say("oom report", text)
        elif reason:
            text = f"snapshot {shipment.begin.id} was not delivered: {reason}"
            self.outbox.count_lost(SNAPSHOT_LOST, messages=1)
            self._emit("snapshot_lost", text, {"snapshot": shipment.begin.id, "reason": reason})
            self.notices.say(shipment.begin.id, text)

    def _emit(self, kind: str, text: str, data: dict[str, object] | None = None) -> None:
        self.outbox.put(Event(0, self._clock.time_ns(), kind, None, text, data or {}))

    def _goodbye(self, ending: Ending | None, why: str = "") -> Goodbye:
        time_ns = self._clock.time_ns()
        if ending is None:
            return Goodbye(0, time_ns, "detach", None, why)
        return Goodbye(0, time_ns, ending.reason, ending.exit_code, ending.text)
