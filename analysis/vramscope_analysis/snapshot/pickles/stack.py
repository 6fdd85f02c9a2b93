"""The stack of the opcode machine."""

from __future__ import annotations

from typing import Any

from vramscope_analysis.snapshot.errors import SnapshotError, shown


class OperandStack:
    """Values by marks: ``items`` are those above the last mark, ``below`` the stacks under it.

    A container can be filled only where it was opened. Once something else holds it, it is
    finished, however often the memo puts it onto the stack again.
    """

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.below: list[list[Any]] = []
        # Places (marks below, items below) of containers that came from the memo.
        self._finished: set[tuple[int, int]] = set()

    def mark(self) -> None:
        """Begin a new stack on top of this one."""
        self.below.append(self.items)
        self.items = []

    def pop_mark(self) -> list[Any]:
        """Take off what is above the last mark, and the mark."""
        items = self.items
        if not self.below:
            raise SnapshotError("an opcode needs a mark and there is none")
        self.items = self.below.pop()
        return items

    def open(self, container: list[Any] | dict[Any, Any]) -> None:
        """Push a container that is to be filled."""
        if self._finished:
            self._finished.discard((len(self.below), len(self.items)))
        self.items.append(container)

    def push_finished(self, container: list[Any] | dict[Any, Any]) -> None:
        """Push a container that must not be filled."""
        self._finished.add((len(self.below), len(self.items)))
        self.items.append(container)

    def target(self, kind: type) -> Any:
        """The container on top, to be filled; SnapshotError for anything else."""
        target = self.items[-1]
        if type(target) is not kind:
            raise SnapshotError(f"expected a {kind.__name__} to fill, got {shown(target)}")
        if self._finished and (len(self.below), len(self.items) - 1) in self._finished:
            raise SnapshotError(f"a {kind.__name__} is changed after it was finished")
        return target
