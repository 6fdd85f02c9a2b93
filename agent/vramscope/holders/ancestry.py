"""Who refers to an object, and who to that, up to something that is alive for a reason of its own.

Asked of Python's garbage collector, which goes through all objects of the process for each answer.
So it is for what cannot be reached from the job's names: garbage, exceptions, caches of libraries.

What is garbage is told as the collector tells it (``gc_collect_main``: ``subtract_refs``,
``move_unreachable``), within the objects above those that are asked for: an object all of whose
references come from others of them that nothing else refers to.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable
from types import CodeType, FrameType, ModuleType
from typing import Any, Final

from vramscope.holders.classes import OwnClasses, class_of
from vramscope.holders.code_owner import Owner, owner_of
from vramscope.holders.time_box import TimeBox

MAX_OBJECTS: Final = 2_000
MAX_WIDTH: Final = 64
"""Objects that are asked for at once: each reference of the process is compared with each."""


class Ancestry:
    """Objects above some others, and which of them are alive.

    Everything found is held until :meth:`clear`, which must be called before the job goes on.

    Args:
        is_anchor: whether an object is known to be alive, and by what name.
        limit_s: stops after so long.
        ours: ids of containers of ours, which do not count.
    """

    def __init__(
        self, is_anchor: Callable[[Any], bool], limit_s: float, ours: Iterable[int] = ()
    ) -> None:
        self._is_anchor = is_anchor
        self._box = TimeBox(limit_s)
        self._ours = set(ours)
        self._own_classes = OwnClasses()
        self.objects: dict[int, Any] = {}
        """By id; the only container of ours that refers to them between two questions."""
        self.parents: dict[int, list[int]] = {}
        """By the id of an object, those of the objects that refer to it."""
        self.anchors: set[int] = set()
        self.alive: set[int] = set()
        """Ids of those that more than other objects here refer to."""
        self.garbage: set[int] = set()
        """Ids of those that only the collector will free."""
        self.is_complete = True
        """Whether it was not stopped early."""

    def search(self, targets: list[Any]) -> None:
        """Go up as far as it takes, then tell what is alive.

        Args:
            targets: where to begin. The list is emptied: what it holds would seem alive by it.
        """
        self._ours.add(id(self.objects))
        self.objects.update((id(target), target) for target in targets)
        targets.clear()
        self.parents.update((number, []) for number in self.objects)
        level = deque(self.objects)
        while level:
            if self._box.is_over or len(self.objects) > MAX_OBJECTS:
                self.is_complete = False
                break
            now = [level.popleft() for _ in range(min(MAX_WIDTH, len(level)))]
            level.extend(self._go_up(now))
        self._tell_alive()

    def way_to(self, target: Any) -> list[Any]:
        """Objects from the nearest that is alive for a reason of its own down to the target."""
        below = self._upwards(target)
        for number in below:
            if number in self.alive or number in self.anchors:
                return self._down(number, below)
        return []

    def circle_above(self, target: Any) -> list[Any]:
        """The shortest circle of objects that a piece of garbage hangs on."""
        for number in self._upwards(target):
            circle = self._circle(number)
            if circle:
                return circle
        return []

    def way_down(self, target: Any) -> list[Any]:
        """From the nearest object of that circle down to the target."""
        below = self._upwards(target)
        number = next((each for each in below if self._circle(each)), id(target))
        return self._down(number, below)

    def _upwards(self, target: Any) -> dict[int, int]:
        """Ids of all objects above one, the nearest first, with that of the object below."""
        below: dict[int, int] = {id(target): 0}
        pending = deque([id(target)])
        while pending:
            number = pending.popleft()
            for parent in self.parents.get(number, ()):
                if parent not in below:
                    below[parent] = number
                    pending.append(parent)
        return below

    def clear(self) -> None:
        """Hold nothing any more."""
        self.objects.clear()

    def _go_up(self, level: list[int]) -> list[int]:
        """Find who refers to some objects. Returns the new ones that are to be gone up from."""
        # By name: from Python 3.13 on the tuple of the arguments is among the answers.
        asked = tuple(self.objects[number] for number in level)
        found = gc.get_referrers(*asked)
        wanted = set(level)
        further: list[int] = []
        try:
            for parent in found:
                if parent is found or parent is asked or self._is_ours(parent):
                    continue
                children = {id(each) for each in gc.get_referents(parent)} & wanted
                for child in children:
                    self.parents[child].append(id(parent))
                if id(parent) in self.objects:
                    continue
                self.objects[id(parent)] = parent
                self.parents[id(parent)] = []
                if _is_rooted(parent) or self._is_anchor(parent):
                    self.anchors.add(id(parent))
                else:
                    further.append(id(parent))
        finally:
            found.clear()
        return further

    def _is_ours(self, value: Any) -> bool:
        if id(value) in self._ours:
            return True
        if class_of(value) is FrameType:
            return owner_of(value.f_code.co_filename) is Owner.OWN
        return self._own_classes.has(value)

    def _tell_alive(self) -> None:
        """Follow the collector: what is referred to from elsewhere is alive, and what it holds."""
        counts: dict[int, int] = dict.fromkeys(self.objects, 0)
        children: dict[int, list[int]] = {}
        for number, each in self.objects.items():
            inside = [id(held) for held in gc.get_referents(each) if id(held) in counts]
            children[number] = inside
            for held in inside:
                counts[held] += 1
            del each
        ours = _references_of_ours()
        self.alive = {
            number
            for number, references in _reference_counts(self.objects)
            if references - ours > counts[number]
        }
        reached = set(self.alive | self.anchors)
        pending = list(reached)
        while pending:
            for held in children[pending.pop()]:
                if held not in reached:
                    reached.add(held)
                    pending.append(held)
        # Without all of those above, one of them may hold what looks like garbage.
        self.garbage = set(self.objects) - reached if self.is_complete else set()

    def _down(self, number: int, below: dict[int, int]) -> list[Any]:
        way: list[Any] = []
        while number:
            way.append(self.objects[number])
            number = below[number]
        return way

    def _circle(self, start: int) -> list[Any]:
        """Objects from one, by those it holds, back to just before itself; empty: none."""
        above: dict[int, int] = {}
        pending = deque([start])
        while pending:
            number = pending.popleft()
            for parent in self.parents.get(number, ()):
                if parent == start:
                    circle = [self.objects[start]]
                    while number != start:
                        circle.append(self.objects[number])
                        number = above[number]
                    return circle
                if parent not in above:
                    above[parent] = number
                    pending.append(parent)
        return []


def _reference_counts(objects: dict[int, Any]) -> list[tuple[int, int]]:
    return [(number, sys.getrefcount(each)) for number, each in objects.items()]


def _references_of_ours() -> int:
    """References that an object of our dictionary has from us: of one that has no others."""
    return _reference_counts({0: object()})[0][1]


def _is_rooted(value: Any) -> bool:
    """Whether it stays for as long as the process: a class, a module or its variables."""
    kind = class_of(value)
    if issubclass(kind, (type, ModuleType, CodeType)):
        return True
    return kind is dict and "__name__" in value and "__loader__" in value and "__spec__" in value
