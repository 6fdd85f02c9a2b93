"""The commands a person can send to a job: what one is, its states and its receipts."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct, field

from vramscope_protocol.integers import Int64
from vramscope_protocol.parameters import NoParams

Right = Literal["view", "control"]
Place = Literal["step boundary", "agent thread"]

CommandState = Literal["queued", "prepared", "running", "done", "failed", "refused", "expired"]
FINAL_STATES: Final[frozenset[str]] = frozenset({"done", "failed", "refused", "expired"})


class Receipt(Struct, omit_defaults=True):
    """What a command did on one rank. Sizes in bytes, ``took_s`` in seconds."""

    state: CommandState
    step: Int64 | None = None
    before: dict[str, Any] = field(default_factory=dict[str, Any])
    after: dict[str, Any] = field(default_factory=dict[str, Any])
    returned_bytes: Int64 | None = None
    """Bytes given back to the device (in a dry run: that would be given back)."""
    took_s: float | None = None
    message: str = ""
    """One sentence for a person: what happened, or why nothing did."""
    result: Any = None
    """Text or data of a command that answers a question."""
    dry_run: bool = False


class CommandSpec(Struct, frozen=True):
    """Declaration of one command, read by the agent, the server, the page and the CLI."""

    name: str
    right: Right
    place: Place
    summary: str
    dry_run: bool = False
    same_step: bool = False
    """On all ranks that it is for at the end of the same step, or on none."""
    whole_run: bool = False
    """On all ranks of the run, or not at all."""
    changes_training: bool = False
    """What is trained, or when, is not what it would have been: a person confirms it."""
    params: type[Struct] = NoParams
