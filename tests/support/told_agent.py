"""An agent with an observer and an identity that do what a test says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.support.fake_server import FakeServer
from vramscope.agent import Agent
from vramscope.allowance import Allowance
from vramscope.config import load_config
from vramscope.identity.identity import Identity
from vramscope.identity.source import IdentitySource
from vramscope.outbox.current_outbox import CurrentOutbox
from vramscope_protocol.messages import AgentStatus, Command, Decision, DeviceInfo, Event


class FakeObserver:
    """Puts one event when it is stopped, as the sampler flushes its last rows."""

    def __init__(self, *args: Any, outbox: CurrentOutbox, **parts: Any) -> None:
        self.outbox = outbox
        self.allowance = Allowance(args[0])
        self.on_device_change = parts["on_device_change"]
        self.offer_status = parts["offer_status"]
        self.torch = "2.9"
        self.calls: list[str] = []
        self.counts_alike = True
        self.submitted: list[Command | Decision] = []

    def start(self) -> None:
        self.calls.append("start")

    def stop(self, timeout_s: float) -> None:
        self.calls.append("stop")
        self.outbox.put(Event(0, 1, "last row"))

    def submit(self, message: Command | Decision) -> None:
        self.submitted.append(message)

    def commands(self) -> list[str]:
        return ["stats"]

    def devices(self) -> list[DeviceInfo]:
        return [DeviceInfo(0, "Fake")]

    def software(self) -> dict[str, str]:
        return {"torch": self.torch}

    def open_map(self) -> None:
        """It has no map to show."""

    def remove_files(self) -> None:
        self.calls.append("remove files")

    def ship_left_reports(self) -> None:
        """Nothing was left here."""

    def mark_step(self) -> None:
        self.calls.append("step")

    def log(self, values: Mapping[str, object]) -> None:
        self.calls.append(f"log {dict(values)}")

    def forget_after_fork(self) -> None:
        self.calls.append("forget")


class Numbers(IdentitySource):
    """Who the process is, as the test says."""

    def become(self, rank: int, world_size: int, **changes: Any) -> None:
        self._next = replace(self.identity, rank=rank, world_size=world_size, **changes)
        self._has_changed = True

    def renew(self) -> Identity:
        self._has_changed = False
        self.identity = self._next
        return self.identity


def numbered(server: FakeServer, tmp_path: Path, **parts: Any) -> tuple[Agent, Numbers]:
    """An agent of a process whose rank the test changes."""
    numbers = Numbers(script="train.py")
    config = load_config(
        {}, url=server.url, token=server.token, spool_dir=str(tmp_path / "spool"), exit_timeout_s=10
    )
    agent = Agent(config, numbers, observe=FakeObserver, **parts)  # type: ignore[arg-type]
    return agent, numbers


def tick(agent: Agent) -> None:
    """What the sampler does about once a second."""
    observer: Any = agent.observer
    observer.offer_status(AgentStatus(1.0, 0.0))
