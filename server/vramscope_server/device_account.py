"""Reads from the store what the account of a device at one moment is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import numpy as np

from vramscope_analysis.waterfall import COLUMNS_OF_STEP, Account, Reading, account, divide
from vramscope_protocol.account import MemoryPart, ProcessMemory
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.errors import NOT_FOUND, VramscopeError
from vramscope_protocol.integers import MAX_INT64
from vramscope_server.store.events import EventFilter, list_events
from vramscope_server.store.store import Store

T = TypeVar("T")
Numbers = Mapping[str, "int | None"]

_SAMPLE_BEFORE_NS: Final = 60_000_000_000
_SAMPLE_AFTER_NS: Final = 1_000_000_000
_TOLD_WITHIN_NS: Final = 5_000_000_000
"""What an agent sees with the driver's list of processes it tells within this time."""

_MOST_SAMPLES: Final = 8000
_STEPS_BACK: Final = 20_000
"""More than a second has, which is what a stored step is behind."""

_OF_SAMPLE: Final = {
    "total": "device.total_bytes",
    "used": "device.used_bytes",
    "free": "device.free_bytes",
    "process": "device.process_bytes",
    "other": "device.other_bytes",
    "sample_reserved": "reserved_bytes.all.current",
    "returnable": "cache.returnable_bytes",
    "stranded": "cache.stranded_bytes",
    "private_pool": "cache.private_pool_bytes",
}
_ALLOCATOR: Final = ("reserved", "active", "allocated")
"""These are in samples as well."""
_OF_ALLOCATOR: Final = {name: COLUMNS_OF_STEP[name] for name in _ALLOCATOR}
_OF_STEP: Final = {
    name: column for name, column in COLUMNS_OF_STEP.items() if name not in _ALLOCATOR
}


class _Step(NamedTuple):
    step: int
    life: int
    time_ns: int
    values: Numbers
    state_before: int | None


class DeviceAccounts:
    """Divides the device of a rank at the end and at the peak of a step.

    Args:
        store: where rows and events are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def at_step(self, run_id: str, rank: int, step: int, life: int | None = None) -> dict[str, Any]:
        """The account at the end and at the peak of a step.

        Args:
            run_id: the run.
            rank: which of its processes.
            step: number of the step.
            life: of this life of the rank; of its newest one with this step if not given.

        Raises:
            VramscopeError: ``not_found``: there is no such step.
        """
        row = self._step(run_id, rank, step, life)
        sample_ns, sample = self._sample(run_id, rank, row.time_ns)
        reading = Reading(
            **_named(_OF_SAMPLE, sample),
            **_named({**_OF_ALLOCATOR, **_OF_STEP}, row.values),
            optimizer_state_before=row.state_before,
        )
        named = self._named_parts(run_id, rank, row.time_ns)
        return {
            "step": row.step,
            "life": row.life,
            "time_ns": row.time_ns,
            "sample_time_ns": sample_ns,
            "peak_part": reading.peak_part,
            "end": named.of(account(reading, "end")),
            "peak": named.of(account(reading, "peak")),
        }

    def at_last_step(self, run_id: str, rank: int, newest: int | None) -> dict[str, Any] | None:
        """The account at the newest step that is stored; ``None`` if there is none.

        Args:
            run_id: the run.
            rank: which of its processes.
            newest: the newest step that was heard of, which need not be stored yet.
        """
        found = self._last_step(run_id, rank, newest)
        return None if found is None else self.at_step(run_id, rank, *found)

    def at_last_sample(self, run_id: str, rank: int, newest: int | None = None) -> dict[str, Any]:
        """The account at the newest sample, with the categories of the newest step.

        Args:
            run_id: the run.
            rank: which of its processes.
            newest: the newest step that was heard of.
        """
        sample_ns, sample = self._sample(run_id, rank, None)
        found = self._last_step(run_id, rank, newest)
        values: Numbers = {} if found is None else self._step(run_id, rank, *found).values
        categories = {name: values.get(column) for name, column in _OF_STEP.items()}
        reading = Reading(**_named({**_OF_SAMPLE, **_OF_ALLOCATOR}, sample), **categories)
        named = self._named_parts(run_id, rank, None)
        return {"time_ns": sample_ns, "instant": named.of(account(reading, "instant"))}

    def _last_step(self, run_id: str, rank: int, newest: int | None) -> tuple[int, int] | None:
        """Number and life of the newest step that is stored."""
        if newest is None:
            return None
        rows = self._store.steps(run_id, rank, [], max(0, newest - _STEPS_BACK), newest)
        return (int(rows.step[-1]), int(rows.life[-1])) if len(rows.step) else None

    def _named_parts(self, run_id: str, rank: int, time_ns: int | None) -> NamedParts:
        def told(kind: str, field: str, of: type[T]) -> T:
            end_ns = None if time_ns is None else time_ns + _TOLD_WITHIN_NS
            chosen = EventFilter(end_ns=end_ns, kind=kind, rank=rank)
            found = self._store.read_now(lambda c: list_events(c, run_id, chosen, 1))
            try:
                return msgspec.convert(found[0]["data"][field] if found else [], of)
            except (KeyError, msgspec.ValidationError):
                return of()  # an agent of another version

        return NamedParts(
            told("processes", "processes", list[ProcessMemory]),
            told("outside", "parts", list[MemoryPart]),
        )

    def _step(self, run_id: str, rank: int, step: int, life: int | None) -> _Step:
        names = [*_OF_ALLOCATOR.values(), *_OF_STEP.values()]
        rows = self._store.steps(run_id, rank, names, step - 1, step, None, life)
        positions = np.flatnonzero(rows.step == step)
        if not len(positions):
            raise VramscopeError(NOT_FOUND, f"no step {step} of rank {rank}")
        at = int(positions[-1])
        state = rows.columns[_OF_STEP["optimizer_state"]]
        has_before = at > 0 and rows.life[at - 1] == rows.life[at] and rows.step[at - 1] < step
        return _Step(
            step,
            int(rows.life[at]),
            int(rows.time_ns[at]),
            {name: _number(rows.columns[name][at]) for name in names},
            _number(state[at - 1]) if has_before else None,
        )

    def _sample(
        self, run_id: str, rank: int, time_ns: int | None
    ) -> tuple[int | None, dict[str, int | None]]:
        """The sample at a time: the last that has PyTorch's side, else the first after it."""
        names = list(dict.fromkeys([*_OF_SAMPLE.values(), *_OF_ALLOCATOR.values()]))
        if time_ns is None:
            time_ns = self._newest_ns(run_id, rank, names[:1])
        if time_ns is None:
            return None, dict.fromkeys(names)
        start_ns, end_ns = time_ns - _SAMPLE_BEFORE_NS, time_ns + _SAMPLE_AFTER_NS
        found = self._store.series(run_id, rank, names, start_ns, end_ns, _MOST_SAMPLES)
        times = found.time_ns
        if not len(times):
            return None, dict.fromkeys(names)
        reserved = found.columns[_OF_ALLOCATOR["reserved"]].maximum
        usable = [at for at in range(len(times)) if _number(reserved[at]) is not None]
        before = [at for at in usable if times[at] <= time_ns]
        at = before[-1] if before else (usable[0] if usable else len(times) - 1)
        return int(times[at]), {name: _number(found.columns[name].maximum[at]) for name in names}

    def _newest_ns(self, run_id: str, rank: int, names: list[str]) -> int | None:
        """Time of the newest sample: what is thinned out only says about when it was."""
        start_ns: int | None = None
        while True:
            found = self._store.series(run_id, rank, names, start_ns)
            if not len(found.time_ns):
                return start_ns
            newest_ns = int(found.time_ns[-1])
            if not found.resolution_ms or newest_ns == start_ns:
                return newest_ns
            start_ns = newest_ns


class NamedParts(NamedTuple):
    """Names of what is inside parts of the account, as an agent told them last."""

    processes: list[ProcessMemory]
    outside: list[MemoryPart]

    def of(self, parts: Account) -> dict[str, Any]:
        """The account with these names, each clamped to what the account leaves for it."""
        by_pid = {str(each.pid): each for each in self.processes}
        processes = divide(
            parts["other_processes"], [(pid, each.bytes) for pid, each in by_pid.items()]
        )
        how = {each.name: each.how for each in self.outside}
        outside = divide(parts["outside"], [(each.name, each.bytes) for each in self.outside])
        nobody = ProcessMemory(0)
        return {
            "bytes": parts,
            "other_processes": [
                {
                    "pid": by_pid[pid].pid if pid else None,
                    "command": by_pid.get(pid, nobody).command,
                    "bytes": size,
                }
                for pid, size in processes
            ],
            "outside": [
                {"name": name, "bytes": size, "how": how.get(name, "")} for name, size in outside
            ],
        }


def _named(columns: Mapping[str, str], values: Numbers) -> dict[str, Any]:
    return {name: values[column] for name, column in columns.items()}


def _number(value: Any) -> int | None:
    """A stored number; ``None`` where it is not known."""
    number = float(value)
    # What an agent sends as a float may be anything; no memory is as large as an integer column.
    return int(value) if abs(number) < MAX_INT64 and value != UNKNOWN else None
