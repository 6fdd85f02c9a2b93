"""Tensors that no name of the job leads to: garbage, or held by a library, an exception, by C++."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import FunctionType, GeneratorType, ModuleType
from typing import Any, Final

from vramscope.holders.ancestry import Ancestry
from vramscope.holders.classes import attributes_of, class_name, class_of
from vramscope.holders.clusters import Cluster, Way, clusters
from vramscope.holders.code_owner import Owner, owner_of
from vramscope.holders.holder import HolderFound, SourceLine
from vramscope.holders.naming import circle_targets, circle_words, name_way
from vramscope.holders.reach import Reach, Root
from vramscope.holders.search import ways_within

_MAX_CIRCLES: Final = 3


class Above:
    """What is above some tensors. Held until :meth:`clear`, before the job goes on.

    Args:
        reach: what names lead to; the search ends where it meets it.
        tensors: some of them. The list is emptied.
        births: when each came, as a number that rises.
        limit_s: how long to look.
    """

    def __init__(
        self, reach: Reach, tensors: list[Any], births: Sequence[int], limit_s: float
    ) -> None:
        self._reach = reach
        self._ids = list(map(id, tensors))
        self._births = births
        self._ancestry = Ancestry(
            lambda value: id(value) in reach.number_of, limit_s, [id(reach.objects)]
        )
        self._ancestry.search(tensors)
        # Of both searches, by the ids of the objects.
        self._objects: dict[int, Any] = dict(self._ancestry.objects)
        self.is_complete = self._ancestry.is_complete
        """Whether it was not stopped early."""
        self.alone = {
            place for place, number in enumerate(self._ids) if not self._ancestry.parents[number]
        }
        """Places of those that nothing in Python refers to."""
        self.garbage = {
            place for place, number in enumerate(self._ids) if number in self._ancestry.garbage
        }
        """Places of those that only the collector will free."""

    def holders(self, places: Sequence[int]) -> list[HolderFound]:
        """What holds some of the tensors.

        Args:
            places: of these in the list.
        """
        ways: dict[int, list[Way]] = {}
        circles: dict[tuple[str, ...], HolderFound] = {}
        unknown = 0
        for place in places:
            number = self._ids[place]
            if place in self.garbage:
                holder = self._garbage(number)
                circles.setdefault(tuple(holder.chain), holder).tensors += 1
            elif place not in self.alone:
                way = self._ancestry.way_to(self._objects[number])
                # Where the search was stopped, something above may hold what seems alive by itself.
                if way and (self.is_complete or id(way[0]) in self._ancestry.anchors):
                    ways[number] = _ways(self._reach, way, self._objects)
                else:
                    unknown += 1
        born = {number: self._births[self._ids.index(number)] for number in ways}
        found = [_named(cluster, self._objects) for cluster in clusters(ways, born)]
        found += sorted(circles.values(), key=lambda each: -each.tensors)[:_MAX_CIRCLES]
        if unknown:
            found.append(HolderFound("unknown", tensors=unknown))
        return found

    def clear(self) -> None:
        """Hold nothing any more."""
        self._objects.clear()
        self._ancestry.clear()

    def _garbage(self, number: int) -> HolderFound:
        target = self._objects[number]
        circle, way = self._ancestry.circle_above(target), self._ancestry.way_down(target)
        if circle and class_of(circle[0]) is dict and attributes_of(circle[-1]) is circle[0]:
            # Begin with the object, not with the dictionary of its attributes.
            circle = [circle[-1], *circle[:-1]]
            way = [circle[0], *way]
        return HolderFound("garbage", circle_words(circle, way), targets=circle_targets(circle))


def _ways(reach: Reach, way: list[Any], objects: dict[int, Any]) -> list[Way]:
    """A way from its anchor, and from the name that leads to the anchor."""
    path = list(map(id, way))
    number = reach.number_of.get(path[0])
    if number is not None:
        prefix = ways_within(reach, number)[0]
        above = [reach.objects[each] for each in prefix.path[:-1]]
        objects.update((id(each), each) for each in above)
        return [Way([*map(id, above), *path], prefix.root)]
    root = _root(way)
    if root is not None and len(path) > 1:
        return [Way(path[1:], root)]
    return [Way(path, None)]


def _root(way: Sequence[Any]) -> Root | None:
    """The name of what a module has."""
    first = way[0]
    if class_of(first) is ModuleType:
        first = attributes_of(first)
    if class_of(first) is not dict or "__name__" not in first:
        return None
    module = sys.modules.get(str(first["__name__"]))
    if module is None or attributes_of(module) is not first:
        return None
    name = next((str(key) for key, value in list(first.items()) if value is way[1]), "")
    file = str(first.get("__file__") or "")
    return Root("global", f"{first['__name__']}.{name}", SourceLine(file, 0, "<module>"))


def _named(cluster: Cluster, objects: Mapping[int, Any]) -> HolderFound:
    way = [objects[number] for number in cluster.way.path]
    first = way[0]
    root = cluster.way.root
    if root is None and class_of(first) is GeneratorType:
        frame = first.gi_frame
        line = None if frame is None else _line(frame)
        root = Root("local", f"a variable of {first.__qualname__}", line)
    holder = name_way(way, cluster.container, root, len(cluster.members))
    hook = _hook(way) if root is None else None
    if hook is not None and holder.kind in ("attribute", "closure", "unknown"):
        holder.kind, holder.frame = "hook", hook
    holder.is_growing = cluster.is_growing
    if holder.kind == "unknown":
        holder.chain[:1] = [f"a {class_name(first)} in use"]
    return holder


def _hook(way: Sequence[Any]) -> SourceLine | None:
    """The function of the job that a tensor hangs on, where C++ alone holds that: a hook."""
    for each in way:
        if class_of(each) is FunctionType:
            code = each.__code__
            if owner_of(code.co_filename) is Owner.USER:
                return SourceLine(code.co_filename, code.co_firstlineno, code.co_name)
    return None


def _line(frame: Any) -> SourceLine:
    return SourceLine(frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name)
