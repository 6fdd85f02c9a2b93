"""One command as its handler gets it, and what a handler may answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from vramscope_protocol.commands import Receipt


class Call(Struct, frozen=True):
    """A command whose parameters were checked."""

    params: Any = None
    """The struct that the command's declaration names."""
    dry_run: bool = False
    step: int = 0
    """Optimizer steps finished when it runs."""
    id: str = ""


class Ongoing(Protocol):
    """A command that goes on over further step boundaries, until it gives its receipt.

    No two of its methods run at the same time. A receipt with the state "running" tells what is
    known so far; after any other none is called again.
    """

    @property
    def progress(self) -> str:
        """How far it is, in a few words: "12 of 50 steps"."""
        ...

    def poll(self, step: int) -> Receipt | None:
        """Called on the training thread, at each further boundary where nothing is busy."""
        ...

    def poll_on_agent_thread(self) -> Receipt | None:
        """Called on the sampler thread once a tick: for what finishes between boundaries."""
        ...

    def cancel(self, reason: str) -> Receipt:
        """Undo what would go on, and say how far it came. Any thread."""
        ...


Answer: TypeAlias = Receipt | Ongoing
Handler: TypeAlias = Callable[[Call], Answer]
"""Does a command; raises what goes wrong."""
