"""Tensors that no name of the job leads to: garbage, or held by a library, an exception, by C++."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import GeneratorType, ModuleType
from typing import Any, Final

from msgspec import Struct, field

from vramscope.holders.ancestry import Ancestry
from vramscope.holders.classes import attributes_of, class_name, class_of
from vramscope.holders.clusters import Cluster, Way, clusters
from vramscope.holders.holder import HolderFound, SourceLine
from vramscope.holders.naming import circle_words, name_way
from vramscope.holders.reach import Reach, Root
from vramscope.holders.search import ways_within

_MAX_CIRCLES: Final = 3


class Unreached(Struct):
    """What is known of such tensors.

    Args:
        holders: of those that something holds, and of the garbage.
        alone: numbers of those that nothing in Python refers to.
        garbage: numbers of those that only the collector will free.
    """

    holders: list[HolderFound] = field(default_factory=list[HolderFound])
    alone: list[int] = field(default_factory=list[int])
    garbage: list[int] = field(default_factory=list[int])


def holders_above(
    reach: Reach, tensors: list[Any], births: Sequence[int], limit_s: float
) -> tuple[Unreached, bool]:
    """Go up from tensors, and say what is there; and whether that is all.

    Args:
        reach: what names lead to; it ends the search where it meets it.
        tensors: some of them. The list is emptied.
        births: when each came, as a number that rises.
        limit_s: how long to look.
    """
    born = {id(tensor): birth for tensor, birth in zip(tensors, births, strict=True)}
    places = {id(tensor): place for place, tensor in enumerate(tensors)}
    ancestry = Ancestry(lambda value: id(value) in reach.number_of, limit_s, [id(reach.objects)])
    try:
        ancestry.search(tensors)
        return _told(ancestry, reach, born, places), ancestry.is_complete
    finally:
        ancestry.clear()


def _told(
    ancestry: Ancestry, reach: Reach, born: Mapping[int, int], places: Mapping[int, int]
) -> Unreached:
    found = Unreached()
    ways: dict[int, list[Way]] = {}
    # The paths of both searches by one kind of number: the ids of the objects.
    objects = dict(ancestry.objects)
    circles: dict[tuple[str, ...], HolderFound] = {}
    for number in born:
        target = objects[number]
        if number in ancestry.garbage:
            found.garbage.append(places[number])
            words = circle_words(ancestry.circle_above(target), ancestry.way_down(target))
            holder = circles.setdefault(tuple(words), HolderFound("garbage", words))
            holder.tensors += 1
            continue
        way = ancestry.way_to(target)
        if len(way) < 2:
            found.alone.append(places[number])
            continue
        objects.update((id(each), each) for each in way)
        ways[number] = _ways(reach, way, objects)
        del way, target
    for cluster in clusters(ways, born):
        found.holders.append(_named(cluster, objects))
    found.holders += sorted(circles.values(), key=lambda each: -each.tensors)[:_MAX_CIRCLES]
    objects.clear()
    return found


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
    holder.is_growing = cluster.is_growing
    if holder.kind == "unknown":
        holder.chain[:1] = [f"a {class_name(first)} in use"]
    return holder


def _line(frame: Any) -> SourceLine:
    return SourceLine(frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name)
