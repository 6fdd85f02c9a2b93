"""What would make a job need less memory of the host, as far as its own numbers show it.

Workers, batches that they keep ready, and pinned copies are what a DataLoader takes of the host.
Each measure frees what this job has there, and is left out where that is not known or not much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.words import MIB, count_text, share_text, size_text
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence

WORTH_BYTES: Final = 64 * MIB
WORTH_SHARE: Final = 0.02
"""What frees less than this part of what is full, or less than that, is not worth a change."""
_STEPS: Final = 100


@dataclass(frozen=True)
class HostUse:
    """What a process has on its host beside itself; None is not known.

    Args:
        workers: processes that it started with multiprocessing.
        workers_bytes: memory of these.
        pinned_bytes: pinned memory that PyTorch's host allocator holds.
        shared_bytes: that came into use in the file system for shared memory since the workers
            started, whoever it is of.
        wait_share: part of a step in which it waits for the next batch.
    """

    workers: int | None = None
    workers_bytes: int | None = None
    pinned_bytes: int | None = None
    shared_bytes: int | None = None
    wait_share: float | None = None


def host_use(rank: RankEvidence) -> HostUse:
    """What a process has on its host now."""
    samples = rank.samples
    return HostUse(
        samples.last("host.workers"),
        samples.last("host.workers_pss_bytes"),
        samples.last("host.pinned_reserved_bytes"),
        _shared_since_workers(samples),
        _wait_share(rank.steps),
    )


def advise_host(use: HostUse, full_bytes: int) -> tuple[Remedy, ...]:
    """Measures against a host, or a container, that is full; the most effective first.

    Args:
        use: of the process.
        full_bytes: size of what is full.
    """
    return _worth((_fewer_workers, _smaller_prefetch, _not_pinned), use, full_bytes)


def advise_shared(use: HostUse, full_bytes: int) -> tuple[Remedy, ...]:
    """Measures against shared memory that is full; the most effective first.

    Args:
        use: of the process.
        full_bytes: size of the file system for shared memory.
    """
    return _worth((_fewer_batches, _smaller_prefetch), use, full_bytes, least_bytes=MIB)


Measure = Callable[[HostUse], Remedy | None]


def _worth(
    measures: tuple[Measure, ...], use: HostUse, full_bytes: int, least_bytes: int = WORTH_BYTES
) -> tuple[Remedy, ...]:
    least = max(least_bytes, WORTH_SHARE * full_bytes)
    found = [remedy for measure in measures if (remedy := measure(use)) is not None]
    worth = [remedy for remedy in found if (remedy.predicted_bytes or 0) >= least]
    return tuple(sorted(worth, key=lambda remedy: -(remedy.predicted_bytes or 0)))


def _fewer_workers(use: HostUse) -> Remedy | None:
    """Half of the workers, with all that they hold."""
    if use.workers is None or use.workers < 2 or not use.workers_bytes:
        return None
    why = f"They hold {size_text(use.workers_bytes)}; what each of them has goes with it."
    return _with_fewer(use, use.workers, use.workers_bytes, why)


def _fewer_batches(use: HostUse) -> Remedy | None:
    """Half of the workers, with the batches that they keep ready."""
    if use.workers is None or use.workers < 2 or not use.shared_bytes:
        return None
    why = f"Each keeps batches ready: {size_text(use.shared_bytes)} since they started."
    return _with_fewer(use, use.workers, use.shared_bytes, why)


def _with_fewer(use: HostUse, workers: int, held_bytes: int, why: str) -> Remedy:
    fewer = workers // 2
    waits = ""
    if use.wait_share is not None:
        waits = f": {share_text(use.wait_share)} of a step is waiting for data now"
    return Remedy(
        f"use {count_text(fewer, 'DataLoader worker')} in place of {workers}",
        why,
        held_bytes * (workers - fewer) // workers,
        f"batches may be late{waits}",
        f"DataLoader(..., num_workers={fewer})",
    )


def _smaller_prefetch(use: HostUse) -> Remedy | None:
    """Half as many batches that wait in shared memory."""
    if not use.workers or not use.shared_bytes:
        return None
    return Remedy(
        "halve prefetch_factor",
        f"{size_text(use.shared_bytes)} of shared memory came into use since the workers started: "
        "batches that wait (2 for each worker where none is set).",
        use.shared_bytes // 2,
        "fewer batches are ready when one takes long",
        "DataLoader(..., prefetch_factor=1)  # half of what it is",
    )


def _not_pinned(use: HostUse) -> Remedy | None:
    """No pinned copies of batches."""
    if not use.pinned_bytes:
        return None
    return Remedy(
        "do without pin_memory",
        f"PyTorch holds {size_text(use.pinned_bytes)} of pinned memory for copies of batches, and "
        "does not give it back.",
        use.pinned_bytes,
        "copies to the device are slower, and the training thread waits for each",
        "DataLoader(..., pin_memory=False)",
    )


def _shared_since_workers(samples: Rows) -> int | None:
    """What is in use of shared memory now beyond what was before the first worker came."""
    workers, used = samples.numbers("host.workers"), samples.numbers("host.shm_used_bytes")
    started = np.flatnonzero(workers > 0)
    if not len(started):
        return None
    before = used[: int(started[0])]
    before, now = before[np.isfinite(before)], samples.last("host.shm_used_bytes")
    if not len(before) or now is None:
        return None
    return max(now - int(before[-1]), 0)


def _wait_share(steps: Rows) -> float | None:
    rows = steps.after(-_STEPS)
    wait, took = rows.numbers("step.data_wait_us"), rows.numbers("step.duration_us")
    known = np.isfinite(wait) & np.isfinite(took) & (took > 0)
    if not known.any():
        return None
    return float(min(wait[known].sum() / took[known].sum(), 1.0))
