"""Why tensors are alive, in the words of a report."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field, to_builtins

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


class StoreTarget(Struct, frozen=True):
    """A name that something is stored into.

    Args:
        file: source file of the class or function that has the name.
        name: of the variable or attribute.
        is_attribute: which of the two.
        class_name: of the class that has the attribute.
        first_line: a line of the function that has the variable; 0: it is the module's.
        is_single: whether it is the tensor itself, and no container of many.
    """

    file: str
    name: str
    is_attribute: bool = False
    class_name: str = ""
    first_line: int = 0
    is_single: bool = False


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
    stored_at: SourceLine | None = None
    """The statement that puts tensors there, where it is the only one."""
    limited_at: SourceLine | None = None
    """Where it is filled: the line that takes things out again, or looks at how many there are."""
    targets: list[StoreTarget] = field(default_factory=list[StoreTarget])
    """What that statement may store into, until it is looked for. Not in a report."""
    caller: StoreTarget | None = None
    """The variable that has the object which keeps the tensors. Not in a report."""


def holder_report(holder: HolderFound) -> dict[str, Any]:
    """A holder as JSON."""
    report: dict[str, Any] = to_builtins(holder)
    del report["targets"], report["caller"]
    return report
