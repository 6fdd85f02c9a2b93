"""Checks on values that are kept as they are: settings, annotations, keys that are not known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vramscope_analysis.snapshot.errors import SnapshotError, shown
from vramscope_analysis.snapshot.kinds import is_dict, is_list
from vramscope_analysis.snapshot.limits import Limits, over
from vramscope_analysis.snapshot.runs.run import expand, values_of_runs

_SCALARS = {str, int, float, bool, type(None)}


class PlainValues:
    """Makes sure that values are plain, not cyclic, not too deep and not too large when unfolded.

    An object that is reachable in several ways counts each time, as every later walk over it
    would meet it each time; but it is looked at only once.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._values_left = limits.opcodes
        # By identity: values unfolded, depth. The objects are kept so that ids stay theirs.
        self._known: dict[int, tuple[int, int]] = {}
        self._kept: list[Any] = []

    def check(self, value: Any, where: str) -> None:
        """Raise SnapshotError unless the value is plain and within the limits."""
        if type(value) in _SCALARS:
            return
        open_ids: set[int] = set()
        walk: list[tuple[Any, Iterator[Any]]] = []
        self._enter(value, walk, open_ids, where)
        while walk:
            container, parts = walk[-1]
            for part in parts:
                if type(part) not in _SCALARS and id(part) not in self._known:
                    self._enter(part, walk, open_ids, where)
                    break
            else:
                walk.pop()
                open_ids.discard(id(container))
                self._close(container, where)

    def _enter(
        self,
        container: Any,
        walk: list[tuple[Any, Iterator[Any]]],
        open_ids: set[int],
        where: str,
    ) -> None:
        if is_list(container):
            self._expand(container, where)
        if type(container) not in (dict, list, tuple):
            raise SnapshotError(f"{where}: expected plain data, got {shown(container)}")
        if id(container) in open_ids:
            raise SnapshotError(f"{where}: a {type(container).__name__} contains itself")
        if len(walk) >= self._limits.depth:
            raise over(f"{where}: containers are nested too deeply", self._limits.depth, "depth")
        open_ids.add(id(container))
        walk.append((container, iter(_parts(container))))

    def _expand(self, items: list[Any], where: str) -> None:
        """Replace runs by their dicts: what is kept as it is has no columns."""
        self._values_left -= values_of_runs(items)
        if self._values_left < 0:
            raise over(f"{where}: too many values to keep", self._limits.opcodes, "opcodes")
        expand(items)

    def _close(self, container: Any, where: str) -> None:
        values, depth = 1, 0
        for part in _parts(container):
            part_values, part_depth = self._known.get(id(part), (1, 0))
            values += part_values
            depth = max(depth, part_depth)
        if depth >= self._limits.depth:
            raise over(f"{where}: containers are nested too deeply", self._limits.depth, "depth")
        if values > self._limits.unfolded_values:
            raise over(
                f"{where}: unfolds to more than {values - 1:,} values through shared references",
                self._limits.unfolded_values,
                "unfolded_values",
            )
        self._known[id(container)] = (values, depth + 1)
        self._kept.append(container)


def _parts(container: Any) -> list[Any]:
    return [*container.keys(), *container.values()] if is_dict(container) else list(container)
