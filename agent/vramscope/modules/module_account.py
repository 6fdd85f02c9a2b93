"""Which module the memory of a step belongs to, from readings at its borders. Pure.

A reading is taken when a module's forward begins and ends, and when its backward begins. What is
allocated at the end of a forward beyond what was there at its beginning has been kept: saved for
the backward, or handed on as the output. A peak belongs to the module that was running, and to all
modules above it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

from vramscope.modules.module_tree import ModuleTree


class Reading(NamedTuple):
    """Allocated bytes at one instant, and the highest since the reading before."""

    allocated_bytes: int
    peak_bytes: int


class ModuleMemory(Struct):
    """What one module needed: of several steps the most."""

    calls: int = 0
    """Forwards a step."""
    kept_bytes: int | None = None
    """Allocated in its forward and still there at its end."""
    forward_peak_bytes: int | None = None
    """Highest allocated on the whole device while its forward ran."""
    forward_extra_bytes: int | None = None
    """The same beyond what was allocated when its forward began."""
    backward_peak_bytes: int | None = None
    backward_extra_bytes: int | None = None
    recomputed: bool = False
    """Its forward ran again inside the backward: activation checkpointing."""


class _Forward(Struct):
    position: int
    began_bytes: int


class ModuleAccount:
    """Adds up what the modules of one model need in one step after the other."""

    def __init__(self, tree: ModuleTree) -> None:
        self._tree = tree
        self._memory: dict[int, ModuleMemory] = {}
        self._forwards: list[_Forward] = []
        self._kept: dict[int, int] = {}
        self._calls: dict[int, int] = {}
        self._backward: int | None = None
        self._backward_began: dict[int, int] = {}

    def forward_begins(self, position: int, reading: Reading) -> None:
        """A module is called."""
        self._note_peak(reading)
        self._forwards.append(_Forward(position, reading.allocated_bytes))

    def forward_ends(self, position: int, reading: Reading) -> None:
        """A module has returned, or raised."""
        self._note_peak(reading)
        while self._forwards:  # one that raised before its end was told is over as well
            forward = self._forwards.pop()
            if forward.position == position:
                break
        else:
            return
        self._calls[position] = self._calls.get(position, 0) + 1
        kept_bytes = max(0, reading.allocated_bytes - forward.began_bytes)
        self._kept[position] = self._kept.get(position, 0) + kept_bytes

    def backward_begins(self, position: int, reading: Reading, *, recomputed: bool = False) -> None:
        """The gradient of a module's output is there, or its forward runs again for it."""
        self._note_peak(reading)
        for each in self._tree.lineage(position):
            self._backward_began.setdefault(each, reading.allocated_bytes)
        running = self._backward
        # A module and the last one within it have the same output: the inner one is running.
        if running is None or position not in self._tree.lineage(running):
            self._backward = position
        if recomputed:
            self._of(position).recomputed = True

    def backward_goes_on_above(self, position: int, reading: Reading) -> None:
        """A forward that ran again is over: what follows belongs to the module above it."""
        self._note_peak(reading)
        self._backward = self._tree.entries[position].parent

    def step_ends(self, reading: Reading) -> None:
        """An optimizer step is over."""
        self._note_peak(reading)
        for position, calls in self._calls.items():
            memory = self._of(position)
            memory.calls = max(memory.calls, calls)
            memory.kept_bytes = max(memory.kept_bytes or 0, self._kept[position])
        for kept in (self._forwards, self._kept, self._calls, self._backward_began):
            kept.clear()
        self._backward = None

    def report(self) -> list[dict[str, Any]]:
        """Every module that holds or needed memory, parents before children."""
        totals = self._totals()
        rows: list[dict[str, Any]] = []
        for position, entry in enumerate(self._tree.entries):
            memory = self._memory.get(position)
            parameters_bytes, buffers_bytes = totals[position]
            if memory is None and not (parameters_bytes or buffers_bytes):
                continue
            found = memory or ModuleMemory()
            rows.append(
                {
                    "path": entry.path,
                    "type": entry.type_name,
                    "depth": len(self._tree.lineage(position)) - 1,
                    "parameters_bytes": parameters_bytes,
                    "buffers_bytes": buffers_bytes,
                    "calls": found.calls,
                    "kept_bytes": found.kept_bytes,
                    "forward_peak_bytes": found.forward_peak_bytes,
                    "forward_extra_bytes": found.forward_extra_bytes,
                    "backward_peak_bytes": found.backward_peak_bytes,
                    "backward_extra_bytes": found.backward_extra_bytes,
                    "recomputed": found.recomputed,
                }
            )
        return rows

    def _totals(self) -> list[list[int]]:
        totals = [[each.parameters_bytes, each.buffers_bytes] for each in self._tree.entries]
        for position in range(len(totals) - 1, 0, -1):
            parent = self._tree.entries[position].parent
            if parent is not None:
                totals[parent][0] += totals[position][0]
                totals[parent][1] += totals[position][1]
        return totals

    def _note_peak(self, reading: Reading) -> None:
        """Credit what was highest since the last reading to whoever was running."""
        peak_bytes = reading.peak_bytes
        for forward in self._forwards:
            memory = self._of(forward.position)
            memory.forward_peak_bytes = max(memory.forward_peak_bytes or 0, peak_bytes)
            extra_bytes = max(0, peak_bytes - forward.began_bytes)
            memory.forward_extra_bytes = max(memory.forward_extra_bytes or 0, extra_bytes)
        if self._backward is None:
            return
        for position in self._tree.lineage(self._backward):
            memory = self._of(position)
            memory.backward_peak_bytes = max(memory.backward_peak_bytes or 0, peak_bytes)
            extra_bytes = max(0, peak_bytes - self._backward_began.get(position, peak_bytes))
            memory.backward_extra_bytes = max(memory.backward_extra_bytes or 0, extra_bytes)

    def _of(self, position: int) -> ModuleMemory:
        return self._memory.setdefault(position, ModuleMemory())
