"""A look through all objects for the modules that were built before the agent came.

It takes about 0.2 us an object, and nothing else of Python runs meanwhile. So it is made in turns.
"""

from __future__ import annotations

import gc
import sys
import time
from typing import Any, Final

from vramscope.tensors.modules import Modules

TURN_S: Final = 0.1
"""CPU time of one turn, where a part of the objects takes no longer."""

MOST_TURNS: Final = 50
_CHUNK: Final = 20_000
_PARTS: Final = 4
"""A turn looks at one of so many parts of all objects at least. Listing them takes half as long as
looking at them all: of ten million, smaller turns would list again and again, and get nowhere."""
_OVERLAP: Final = 0.95
"""Objects that go meanwhile make the others move up: a turn begins a little before the last end."""


class ModuleScan:
    """Notes every module that the garbage collector knows of.

    The objects are held for no longer than a turn. Their classes are asked and never they
    themselves: a proxy would answer for something else, or raise.

    Args:
        modules: takes what is found.
        turn_s: CPU time that a turn may take.
    """

    def __init__(self, modules: Modules, turn_s: float = TURN_S) -> None:
        self._modules = modules
        self._turn_s = turn_s
        self._turns = 0
        self._position = 0
        self._found: set[int] = set()
        self.is_over = False
        """Whether every object has had its turn, or there were too many."""
        self.is_complete = False
        """Whether none can have been missed."""
        self.objects = 0
        self.took_s = 0.0

    @property
    def found(self) -> int:
        """Modules found."""
        return len(self._found)

    def go_on(self) -> None:
        """Take one turn."""
        start_s = time.perf_counter()
        # Of its own: where the processors are busy, more time would not be had by more turns.
        start_cpu_s = time.thread_time()
        self._turns += 1
        # The oldest first: what is built from now on the hooks see.
        objects: list[Any] = []
        try:
            for age in (2, 1, 0):
                objects += gc.get_objects(generation=age)
            self.objects = len(objects)
            self._position = int(self._position * _OVERLAP)
            least = self._position + self.objects // _PARTS
            while self._position < self.objects:
                self._look_at(objects[self._position : self._position + _CHUNK])
                self._position += _CHUNK
                is_spent = time.thread_time() - start_cpu_s >= self._turn_s
                if is_spent and self._position >= least:
                    break
        finally:
            # It is among the objects itself: they would all be held until the next collection.
            objects.clear()
        if self._position >= self.objects:
            self.is_over = True
            # Objects that the job has frozen are not listed.
            self.is_complete = gc.get_freeze_count() == 0
        elif self._turns >= MOST_TURNS:
            self.is_over = True
        self.took_s += time.perf_counter() - start_s

    def _look_at(self, objects: list[Any]) -> None:
        module_class: Any = sys.modules["torch"].nn.Module
        kinds: list[Any] = list(map(type, objects))
        # By id: a class may refuse to be hashed. All of them live, since their objects do.
        of_modules = {
            id(kind)
            for kind in {id(kind): kind for kind in kinds}.values()
            if issubclass(kind, module_class)
        }
        if of_modules:
            for each, kind in zip(objects, kinds, strict=True):
                if id(kind) in of_modules:
                    self._modules.add(each)
                    self._found.add(id(each))
