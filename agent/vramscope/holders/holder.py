"""Why tensors are alive, in the words of a report."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

Kind: TypeAlias = Literal[
    "attribute",
    "global",
    "closure",
    "local",
    "exception",
    "autograd_graph",
    "lru_cache",
    "hook",
    "data_loader",
    "ipc",
    "garbage",
    "cpp",
    "unknown",
]


class SourceLine(Struct, frozen=True):
    """One line of Python."""

    file: str
    line: int
    function: str = ""


class HolderFound(Struct):
    """What keeps some tensors alive: the fields of ``Holder`` in the growth report."""

    kind: Kind
    chain: list[str] = field(default_factory=list[str])
    """From the name that a person knows to the tensor."""
    frame: SourceLine | None = None
    """The live line that it is a local of, or where a hook or a cache was defined."""
    tensors: int = 0
    """How many of those that were looked at are held so."""
    is_growing: bool | None = None
    """Whether it held fewer at an earlier look; None is not known."""
