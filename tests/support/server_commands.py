"""Records, issuers and counterparts for the tests of commands."""

from __future__ import annotations

from typing import Any

from vramscope_protocol.commands import CommandState, Receipt
from vramscope_protocol.messages import Command, CommandUpdate
from vramscope_server.auth.principal import SCOPES, Principal
from vramscope_server.commands.record import CommandRecord, RankAnswer
from vramscope_server.commands.request import Issuer

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


class FakeRuns:
    """A registry of one run, ``r1`` called ``train``."""

    def __init__(self, ranks: int = 2) -> None:
        self.state = "live"
        self.rank_states = dict.fromkeys(range(ranks), "live")

    def run(self, run_id: str) -> dict[str, Any] | None:
        """The run with its ranks."""
        if run_id != "r1":
            return None
        ranks = [{"rank": rank, "state": state} for rank, state in self.rank_states.items()]
        return {"id": "r1", "name": "train", "state": self.state, "ranks": ranks}

    def find(self, run: str) -> str | None:
        """Its id."""
        return "r1" if run in {"r1", "train"} else None


class FakeCarrier:
    """Connections to ranks: remembers what was handed to those that are connected."""

    def __init__(self, *connected: int) -> None:
        self.connected = set(connected)
        self.sent: list[tuple[int, Command]] = []

    def send_command(self, run_id: str, rank: int, command: Command) -> bool:
        """Take a command for a connected rank."""
        assert run_id == "r1"
        if rank not in self.connected:
            return False
        self.sent.append((rank, command))
        return True


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
