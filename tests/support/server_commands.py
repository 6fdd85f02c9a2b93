"""Records, issuers and counterparts for the tests of commands."""

from __future__ import annotations

from typing import Any

import msgspec

from vramscope_protocol.commands import CommandState, Receipt
from vramscope_protocol.messages import Command, CommandUpdate, Decision
from vramscope_protocol.user_commands import UserCommand
from vramscope_server.auth.principal import SCOPES, Principal
from vramscope_server.commands.record import CommandRecord, RankAnswer
from vramscope_server.commands.request import CommandRequest, Issuer, make_record
from vramscope_server.registry.step_pace import RankPace

OWNER = Issuer(Principal("owner", SCOPES, None, "f00d"), "cli", "127.0.0.1")
VIEWER = Issuer(Principal("guest", frozenset({"view"}), None, "cafe"), "browser", "10.0.0.9")
S = 10**9


def make_command(ranks: list[int] | None = None, **changes: Any) -> CommandRecord:
    """A command of run r1, made at second 100 and due at second 130."""
    values: dict[str, Any] = {
        "id": "c1",
        "run_id": "r1",
        "name": "empty_cache",
        "params": {},
        "dry_run": False,
        "ranks": [0] if ranks is None else ranks,
        "issued_by": "owner",
        "origin": "cli",
        "created_ns": 100 * S,
        "deadline_ns": 130 * S,
    }
    return CommandRecord(**(values | changes))


def answer(state: CommandState, time_s: int = 101, **receipt: Any) -> RankAnswer:
    """What a rank said."""
    return RankAnswer(state, time_s * S, Receipt(state, **receipt))


def update(
    command_id: str, state: CommandState, seq: int = 1, time_ns: int = 101 * S, **receipt: Any
) -> CommandUpdate:
    """What a rank sends; final states with a receipt."""
    body = Receipt(state, **receipt) if state not in {"queued", "prepared", "running"} else None
    return CommandUpdate(seq, command_id, state, time_ns, body)


def record_of(request: CommandRequest, run_id: str, issuer: Issuer) -> CommandRecord:
    """What becomes of a request in a run of eight ranks that can do everything."""
    run = FakeRuns(8).run("r1")
    assert run is not None
    return make_record(request, run | {"id": run_id}, lambda _rank: True, issuer, 0, 3600.0)


class FakeRuns:
    """A registry of one run, ``r1`` called ``train``."""

    def __init__(self, ranks: int = 2) -> None:
        self.state = "live"
        self.world_size = ranks
        self.rank_states = dict.fromkeys(range(ranks), "live")
        self.from_start = dict.fromkeys(range(ranks), True)
        self.declared: dict[int, list[UserCommand]] = {}
        self.pace = {rank: RankPace(100, 10.0, 0.1) for rank in range(ranks)}

    def run(self, run_id: str) -> dict[str, Any] | None:
        """The run with its ranks."""
        if run_id != "r1":
            return None
        ranks = [
            {
                "rank": rank,
                "state": state,
                "steps_from_start": self.from_start[rank],
                "user_commands": msgspec.to_builtins(self.declared.get(rank, [])),
            }
            for rank, state in self.rank_states.items()
        ]
        shown = {"id": "r1", "name": "train", "state": self.state, "world_size": self.world_size}
        return shown | {"ranks": ranks}

    def paces(self, run_id: str) -> dict[int, RankPace]:
        """Where its ranks are."""
        assert run_id == "r1"
        return self.pace

    def find(self, run: str) -> str | None:
        """Its id."""
        return "r1" if run in {"r1", "train"} else None


class FakeCarrier:
    """Connections to ranks: remembers what was handed to those that are connected."""

    def __init__(self, *connected: int) -> None:
        self.connected = set(connected)
        self.older: set[int] = set()
        """Ranks that prepare nothing."""
        self.lives: dict[int, str] = {}
        self.sent: list[tuple[int, Command]] = []
        self.decisions: list[tuple[int, Decision]] = []

    def send_command(self, run_id: str, rank: int, command: Command) -> bool:
        """Take a command for a connected rank."""
        assert run_id == "r1"
        if rank not in self.connected:
            return False
        self.sent.append((rank, command))
        return True

    def send_decision(self, run_id: str, rank: int, decision: Decision) -> bool:
        """Take a decision for a connected rank."""
        assert run_id == "r1"
        if rank not in self.connected:
            return False
        self.decisions.append((rank, decision))
        return True

    def can_prepare(self, run_id: str, rank: int) -> bool | None:
        """Whether a connected rank does."""
        assert run_id == "r1"
        return rank not in self.older if rank in self.connected else None

    def life(self, run_id: str, rank: int) -> str | None:
        """The process of a connected rank."""
        assert run_id == "r1"
        return self.lives.get(rank, f"life-{rank}") if rank in self.connected else None


class FakeAudience:
    """Remembers what browsers would be told."""

    def __init__(self) -> None:
        self.commands: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []

    def publish_command(self, run_id: str, command: dict[str, Any]) -> None:
        """Take the state of a command."""
        assert run_id == "r1"
        self.commands.append(command)

    def publish_event(self, run_id: str, event: dict[str, Any]) -> None:
        """Take an event."""
        assert run_id == "r1"
        self.events.append(event)
