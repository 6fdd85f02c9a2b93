"""What can be reached from the names of the job: a search from its variables down to tensors.

From above, because the job's own objects are few beside the several hundred thousand that its
imports have made; asking Python who refers to an object goes through all of them, each time.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final, Literal, cast

from msgspec import Struct

from vramscope.holders.classes import PLAIN_DICT, OwnClasses, class_of
from vramscope.holders.code_owner import Owner, owner_of
from vramscope.holders.frame_locals import is_function, live_frames, locals_of
from vramscope.holders.holder import SourceLine
from vramscope.holders.time_box import TimeBox

MAX_OBJECTS: Final = 200_000
_NEWEST: Final = 4_000
"""Of a long container so many of its newest members are looked into, ..."""
_OLDEST: Final = 200
"""... and so many of the oldest."""
MAX_ABOVE: Final = 500
_TIME_EVERY: Final = 256
_NOT_ENTERED: Final = (ModuleType, CodeType, BuiltinFunctionType)


class Root(Struct, frozen=True):
    """A name that a person knows, from which objects are reached."""

    kind: Literal["local", "global"]
    name: str
    line: SourceLine | None = None


class Reach:
    """Objects that were reached, each with the one that it was reached from.

    Everything found is held until :meth:`clear`, which must be called before the job goes on.

    Args:
        limit_s: stops after so long.
        max_objects: or after so many objects.
    """

    def __init__(self, limit_s: float, max_objects: int = MAX_OBJECTS) -> None:
        self._box = TimeBox(limit_s)
        self._max_objects = max_objects
        self.objects: list[Any] = []
        self.parents: list[int] = []
        """Number of the object that it was reached from; negative: a root, -1 - its number."""
        self.roots: list[Root] = []
        self.also: dict[int, list[int]] = {}
        """Further objects from which one is reached."""
        self.number_of: dict[int, int] = {}
        """By the id of the object."""
        self.is_complete = True
        """Whether it was not stopped early."""
        self.found: list[int] = []
        """Numbers of the wanted objects that were reached."""
        self._wanted: set[int] = set()
        self._is_wanted: Callable[[Any], bool] = _nothing
        self._module_dicts: set[int] = set()
        self._own_classes = OwnClasses()

    def search(self, is_wanted: Callable[[Any], bool]) -> None:
        """Reach as much as the limits allow.

        Args:
            is_wanted: asked once of each object; of a wanted one every way to it is noted.
        """
        self._is_wanted = is_wanted
        self._module_dicts = {
            id(vars(module)) for module in list(sys.modules.values()) if type(module) is ModuleType
        }
        self._add_roots()
        position = 0
        while position < len(self.objects):
            if position % _TIME_EVERY == 0 and self._box.is_over:
                self.is_complete = False
                return
            if len(self.objects) >= self._max_objects:
                self.is_complete = False
                return
            self._enter(position)
            position += 1

    def path_to(self, number: int, parent: int | None = None) -> list[int]:
        """Numbers from the first object to this one.

        Args:
            number: of the object.
            parent: the last step of another way to it; see ``also``.
        """
        path = [number]
        number = self.parents[number] if parent is None else parent
        while number >= 0:
            path.append(number)
            number = self.parents[number]
        path.reverse()
        return path

    def above(self, number: int, most: int = MAX_ABOVE) -> set[int]:
        """Numbers of objects that lead to one in any way, as far as the nearest so many."""
        found: set[int] = set()
        pending = deque([number])
        while pending and len(found) < most:
            at = pending.popleft()
            for parent in (self.parents[at], *self.also.get(at, ())):
                if parent >= 0 and parent not in found:
                    found.add(parent)
                    pending.append(parent)
        return found

    def root_of(self, path: list[int], parent: int | None = None) -> Root:
        """The name that a path begins with."""
        first = self.parents[path[0]] if parent is None or len(path) > 1 else parent
        return self.roots[-1 - first]

    def clear(self) -> None:
        """Hold nothing any more."""
        self.objects.clear()
        self.number_of.clear()

    def _add_roots(self) -> None:
        frames = live_frames()
        try:
            order = sorted(frames, key=lambda frame: owner_of(frame.f_code.co_filename))
            for frame in order:
                if is_function(frame):
                    self._add_locals(frame)
                elif owner_of(frame.f_code.co_filename) is Owner.USER:
                    self._add_globals(frame.f_globals, _line_of(frame))
        finally:
            frames.clear()
        for name in ("last_exc", "last_value", "last_traceback"):
            # Of an error that reached the top of an interactive shell.
            self._add_root(Root("global", f"sys.{name}"), getattr(sys, name, None))
        for module in _users_modules():
            self._add_globals(vars(module), None)

    def _add_locals(self, frame: FrameType) -> None:
        variables = locals_of(frame)
        if variables is None:
            return
        line = _line_of(frame)
        for name, value in variables.items():
            self._add_root(Root("local", name, line), value)

    def _add_globals(self, namespace: dict[str, Any], line: SourceLine | None) -> None:
        if namespace.get("__name__") is None:
            return
        module = SourceLine(str(namespace.get("__file__") or "<input>"), 0, "<module>")
        for name, value in list(namespace.items()):
            if not (name.startswith("__") and name.endswith("__")):
                self._add_root(Root("global", name, line or module), value)

    def _add_root(self, root: Root, value: Any) -> None:
        if _is_leaf(value) or issubclass(type(value), _NOT_ENTERED):
            return
        self.roots.append(root)
        self._reached(value, -len(self.roots))

    def _reached(self, value: Any, parent: int) -> None:
        key = id(value)
        known = self.number_of.get(key)
        if known is None:
            if self._own_classes.has(value):
                return
            number = self.number_of[key] = len(self.objects)
            self.objects.append(value)
            self.parents.append(parent)
            if self._is_wanted(value):
                self._wanted.add(key)
                self.found.append(number)
        elif parent >= 0 or key in self._wanted:
            self.also.setdefault(known, []).append(parent)

    def _enter(self, number: int) -> None:
        for value in self._inside(self.objects[number]):
            if not _is_leaf(value) and id(value) not in self._module_dicts:
                self._reached(value, number)

    def _inside(self, value: Any) -> Iterable[Any]:
        kind = class_of(value)
        if kind is list or kind is tuple or kind is deque:
            # A copy, made in one go: the job's other threads may change the original.
            return tuple(value) if len(value) <= _NEWEST else _ends(value)
        if issubclass(kind, dict):
            return _inside_dict(value)
        if kind is FunctionType:
            return (value.__closure__, value.__defaults__, value.__kwdefaults__, value.__dict__)
        if issubclass(kind, _NOT_ENTERED):
            return ()
        if issubclass(kind, type) and not _is_users_class(value):
            return ()
        return gc.get_referents(value)


def _nothing(value: Any) -> bool:
    del value
    return False


def _inside_dict(value: Any) -> list[Any]:
    values = PLAIN_DICT.values(value)
    if len(values) <= _NEWEST:
        # Keys too: of a cache they are what keeps an object.
        return [*values, *PLAIN_DICT.keys(value)]
    return [*islice(reversed(values), _NEWEST), *islice(values, _OLDEST)]


def _ends(value: Any) -> list[Any]:
    return [*islice(reversed(value), _NEWEST), *islice(value, _OLDEST)]


_LEAVES: Final = frozenset({str, int, float, bool, complex, bytes, bytearray, type(None), range})


def _is_leaf(value: Any) -> bool:
    return type(value) in _LEAVES or not gc.is_tracked(value)


def _users_modules() -> list[ModuleType]:
    """Modules with code of the user: told by the package, of which there are few."""
    packages: dict[str, bool] = {}
    found: list[ModuleType] = []
    for name, module in list(sys.modules.items()):
        top = name.partition(".")[0]
        is_users = packages.get(top)
        if is_users is None:
            package = sys.modules.get(top)
            # One without a file, as of a folder without __init__, does not say whose it is.
            says = type(package) is ModuleType and vars(package).get("__file__") is not None
            is_users = packages[top] = not says or _is_users(cast("ModuleType", package))
        if is_users and type(module) is ModuleType and _is_users(module):
            found.append(module)
    return found


def _is_users(module: ModuleType) -> bool:
    file = vars(module).get("__file__")
    return type(file) is str and owner_of(file) is Owner.USER


def _is_users_class(kind: type) -> bool:
    """Whether a class was written for this job, or in a module that is not known."""
    module = sys.modules.get(str(type.__dict__["__module__"].__get__(kind)))
    if module is None:
        return True
    return type(module) is ModuleType and (
        _is_users(module) or vars(module).get("__name__") == "__main__"
    )


def _line_of(frame: FrameType) -> SourceLine:
    code = frame.f_code
    return SourceLine(code.co_filename, frame.f_lineno or 0, code.co_name)
