"""Where the peaks are in PyTorch's nested counters: read, folded and written in few look-ups.

There are 29 of them in ``torch._C._cuda_memoryStats``, and three more for each private pool from
torch 2.13 on. Going through all of the dictionary in Python costs 45 us; this costs a tenth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct

from vramscope_protocol.columns import UNKNOWN

PEAK_COUNTERS: Final = ("allocated_bytes", "active_bytes", "reserved_bytes", "requested_bytes")
"""Counters whose peaks are told of each step, over all pools."""

FourPeaks = tuple[int, int, int, int]
"""Peaks in the order of :data:`PEAK_COUNTERS`; what is not there is ``UNKNOWN``."""

UNKNOWN_PEAKS: Final[FourPeaks] = (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)

_PoolPeaks = dict[Any, int]


class Peaks(Struct, frozen=True):
    """Every peak of one device."""

    fixed: list[int]
    """Of the counters that are always there, in the layout's order."""
    pools: _PoolPeaks
    """Of private pools, which come and go: (counter, pool, kind) -> peak."""


class PeakLayout:
    """The peaks of counters that have the form of these.

    Args:
        stats: nested counters, as ``torch._C._cuda_memoryStats`` returns them.
    """

    def __init__(self, stats: Mapping[str, Any]) -> None:
        grouped: list[str] = []
        single: list[str] = []
        self._pools: list[str] = []
        for name, node in stats.items():
            if not isinstance(node, Mapping):
                continue
            if "peak" in node:
                single.append(name)
            elif "all" in node:
                grouped.append(name)
            else:
                self._pools.append(name)
        self._grouped = _getter(grouped)
        self._single = _getter(single)
        self.paths: list[tuple[str, str | None]] = [
            *((name, kind) for name in grouped for kind in stats[name]),
            *((name, None) for name in single),
        ]
        """Counter and kind of pool of each fixed peak."""
        places: list[int | None] = [
            self.paths.index((name, "all")) if (name, "all") in self.paths else None
            for name in PEAK_COUNTERS
        ]
        self._four = places
        known = [at for at in places if at is not None]
        self._get_four: Callable[[list[int]], FourPeaks] | None = (
            itemgetter(*known) if len(known) == len(places) else None
        )

    def read(self, stats: Mapping[str, Any]) -> Peaks:
        """The peaks of these counters.

        Raises:
            KeyError: they have another form.
        """
        fixed = [stat["peak"] for group in self._grouped(stats) for stat in group.values()]
        fixed += [stat["peak"] for stat in self._single(stats)]
        return Peaks(fixed, self._read_pools(stats) if self._pools else {})

    def four(self, peaks: Peaks) -> FourPeaks:
        """Those that are told of each step."""
        fixed = peaks.fixed
        if self._get_four is not None:
            return self._get_four(fixed)
        one, two, three, four = (UNKNOWN if at is None else fixed[at] for at in self._four)
        return one, two, three, four

    def raise_to(self, stats: Mapping[str, Any], floor: Peaks) -> None:
        """Write into the counters, in place, each peak of ``floor`` that is higher."""
        values = iter(floor.fixed)
        for group in self._grouped(stats):
            for stat in group.values():
                value = next(values)
                if value > stat["peak"]:
                    stat["peak"] = value
        for stat in self._single(stats):
            value = next(values)
            if value > stat["peak"]:
                stat["peak"] = value
        for (name, pool, kind), value in floor.pools.items():
            stat = _pool_stat(stats, name, pool, kind)
            if stat is not None and value > stat["peak"]:
                stat["peak"] = value

    def raise_by_name(self, stats: Mapping[str, Any], floor: Peaks) -> None:
        """The same for counters that may have another form (``torch.accelerator``)."""
        for (name, kind), value in zip(self.paths, floor.fixed, strict=True):
            node: Any = stats.get(name)
            stat: Any = node if kind is None or node is None else node.get(kind)
            if stat is not None and value > stat.get("peak", value):
                stat["peak"] = value
        for (name, pool, kind), value in floor.pools.items():
            stat = _pool_stat(stats, name, pool, kind)
            if stat is not None and value > stat["peak"]:
                stat["peak"] = value

    def _read_pools(self, stats: Mapping[str, Any]) -> _PoolPeaks:
        return {
            (name, pool, kind): stat["peak"]
            for name in self._pools
            for pool, kinds in stats[name].items()
            for kind, stat in kinds.items()
            if isinstance(stat, Mapping)
        }


def fold(one: Peaks | None, other: Peaks) -> Peaks:
    """The higher of both, peak by peak; of pools only those that ``other`` has, the later one.

    Neither is changed, and may be the answer.
    """
    if one is None or (one.fixed == other.fixed and one.pools == other.pools):
        return other
    # Pools that are gone stay so: their ids are not given again.
    pools = {key: max(value, one.pools.get(key, value)) for key, value in other.pools.items()}
    return Peaks(list(map(max, one.fixed, other.fixed)), pools)


def _pool_stat(stats: Mapping[str, Any], name: str, pool: Any, kind: Any) -> Any:
    pools: Any = stats.get(name)
    return None if pools is None else pools.get(pool, {}).get(kind)


def _getter(names: list[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)

    def get(stats: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(stats[name] for name in names)

    return get
