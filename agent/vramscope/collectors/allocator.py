"""Counters of the caching allocator: from PyTorch's nested dict to its flat key names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final

from vramscope.devices.device import Device
from vramscope.notices import Notices
from vramscope.sampling.clock import Clock
from vramscope_protocol.codec import MAX_FIELDS
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Field
from vramscope_protocol.series import SERIES, unit_of

ALL_FIELDS: Final = ("all",)
"""As ``fields``: stream every counter that this PyTorch has."""

_OTHER_SOURCES = (
    "device",
    "host",
    "gc",
    "step",
    "part",
    "category",
    "cache",
    "phase",
    "agent",
    "time_ns",
)

DEFAULT_KEYS: Final = tuple(name for name in SERIES if name.partition(".")[0] not in _OTHER_SOURCES)
"""The counters streamed by default: those that ``series.py`` defines."""

_PER_POOL_KEYS: Final = frozenset({"reserved_bytes_by_private_pools"})
"""Counters whose keys come and go with graphs and pools (2.13+): not columns of a stream."""

_MAX_KEYS: Final = MAX_FIELDS - 96  # room for the other columns of a row, the user's included

SLOW_POLL_NS: Final = 5_000_000
"""A poll that took longer waited for the allocator's lock, holding the GIL."""
_PAUSE_NS: Final = 1_000_000_000


def flatten(stats: Mapping[str, Any], *, per_pool: bool = True) -> dict[str, int]:
    """Flatten nested counters as ``torch.cuda.memory_stats`` does, sorted by key.

    Args:
        stats: what ``torch._C._cuda_memoryStats`` returned.
        per_pool: include the counters of single private pools.
    """
    leaves: dict[str, int] = {}
    for name, node in stats.items():
        if per_pool or name not in _PER_POOL_KEYS:
            leaves.update(_leaves(str(name), node))
    return dict(sorted(leaves.items()))


def _leaves(prefix: str, node: Any) -> Iterator[tuple[str, int]]:
    children = _children(node)
    if children is not None:
        for key, child in children.items():
            yield from _leaves(f"{prefix}.{_part(key)}", child)
    elif isinstance(node, int):
        yield prefix, node


def _children(node: Any) -> Mapping[Any, Any] | None:
    return node if hasattr(node, "items") else None


def _part(key: Any) -> str:
    """One part of a flat key. A private pool is keyed by two ints; PyTorch writes them "0_1"."""
    return str(key).strip("()").replace(", ", "_")


class Layout:
    """A fixed list of counters, compiled into few dictionary look-ups.

    Args:
        keys: flat PyTorch keys. The order of :attr:`keys` is grouped by counter.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        groups: dict[tuple[str, ...], list[str]] = {}
        for key in dict.fromkeys(keys):
            *path, leaf = key.split(".")
            groups.setdefault(tuple(path), []).append(leaf)
        self._groups = [(path, _tuple_getter(leaves)) for path, leaves in groups.items()]
        self.keys = tuple(
            ".".join((*path, leaf)) for path, leaves in groups.items() for leaf in leaves
        )
        self.fields = [Field(key, "q", unit_of(key)) for key in self.keys]

    def values(self, stats: Mapping[str, Any] | None) -> list[int]:
        """Values in the order of :attr:`keys`; a counter that is not there is ``UNKNOWN``."""
        if not stats:
            return [UNKNOWN] * len(self.keys)
        values: list[int] = []
        try:
            for path, get in self._groups:
                node: Any = stats
                for part in path:
                    node = node[part]
                values.extend(get(node))
        except (KeyError, TypeError):
            return [_value(stats, key) for key in self.keys]
        return values


def _tuple_getter(leaves: list[str]) -> Callable[[Any], tuple[int, ...]]:
    if len(leaves) > 1:
        return itemgetter(*leaves)
    leaf = leaves[0]
    return lambda node: (node[leaf],)


def _value(stats: Mapping[str, Any], key: str) -> int:
    node: Any = stats
    for part in key.split("."):
        children = _children(node)
        if children is None or part not in children:
            return UNKNOWN
        node = children[part]
    return node if isinstance(node, int) else UNKNOWN


class AllocatorCounters:
    """Which counters go into a row, and their values.

    Args:
        fields: flat PyTorch keys, ``("all",)`` for every counter, ``None`` for the default set.
    """

    def __init__(self, fields: tuple[str, ...] | None = None) -> None:
        # Every counter is only known once the allocator is up; until then the default set.
        self._wants_all = fields == ALL_FIELDS
        named = fields if fields and not self._wants_all else DEFAULT_KEYS
        self.layout = Layout(named[:_MAX_KEYS])

    def read(self, stats: Mapping[str, Any] | None) -> tuple[Layout, list[int]]:
        """Values of one row, with the layout that names them."""
        if self._wants_all and stats:
            self._wants_all = False
            found = flatten(stats, per_pool=False)
            self.layout = Layout(tuple(dict.fromkeys((*self.layout.keys, *found)))[:_MAX_KEYS])
        layout = self.layout
        return layout, layout.values(stats)


class StatsPoller:
    """Reads the counters on the sampler thread, and stays away while the allocator is busy.

    The C call holds the GIL while it waits for the allocator's lock, so polling during a long
    ``cudaMalloc`` of another thread would stop all Python of the job for that time. An emulated
    device waits without the GIL; slow there is only a busy machine, which no pause helps.
    """

    def __init__(self, device: Device, clock: Clock, notices: Notices) -> None:
        self._device = device
        self._clock = clock
        self._notices = notices
        self._resume_ns: int | None = None

    def poll(self) -> Mapping[str, Any] | None:
        """The counters, or ``None`` when there are none or this is not the time to ask."""
        before_ns = self._clock.monotonic_ns()
        if self._resume_ns is not None and before_ns < self._resume_ns:
            return None
        stats = self._device.memory_stats()
        took_ns = self._clock.monotonic_ns() - before_ns
        if took_ns > SLOW_POLL_NS and not self._device.info.emulated:
            self._resume_ns = before_ns + took_ns + _PAUSE_NS
            self._notices.note(
                "allocator_lock",
                "sampling of the allocator pauses for 1 s: reading its counters took "
                f"{took_ns / 1e6:.0f} ms; step rows stay exact",
            )
        elif self._resume_ns is not None:
            self._resume_ns = None
            self._notices.clear("allocator_lock")
        return stats
