"""The finding ``host_full``: the memory of the host, or its shared memory, is nearly used up.

When a control group is full the kernel ends processes, and a worker that finds no room in shared
memory ends with a bus error. The file cache counts against a limit and goes by itself, so what the
job's processes hold has to fill it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Finding, Remedy
from vramscope_analysis.diagnosis.host_advisor import (
    HostUse,
    advise_host,
    advise_shared,
    host_use,
)
from vramscope_analysis.diagnosis.words import MIB, count_text, fitting, size_text
from vramscope_analysis.evidence.columns import Rows
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence

KIND: Final = "host_full"
HOST: Final = "host memory"
SHARED: Final = "shared memory"
FULL_SHARE: Final = 0.9
OWN_SHARE: Final = 0.75
"""Of the limit, the processes of the job hold at least so much."""
LASTS_S: Final = 20.0
MIN_READINGS: Final = 5


def host_full(run: RunEvidence) -> list[Finding]:
    """Judge whether the host's memory is nearly used up, and by what of the job."""
    found: list[Finding] = []
    for rank in run.ranks:
        beside = [other for other in run.ranks if _is_beside(rank, other)]
        if rank is beside[0]:  # the others of its group say the same
            found += [*_limit(beside, emulated=run.emulated), *_shared(beside)]
    return found


def _is_beside(rank: RankEvidence, other: RankEvidence) -> bool:
    """Whether two processes share a host and its limit."""
    limits = (each.samples.last("host.limit_bytes") for each in (rank, other))
    return rank.host == other.host and len(set(limits)) == 1


def _limit(ranks: Sequence[RankEvidence], *, emulated: bool) -> list[Finding]:
    samples = ranks[0].samples
    limit_bytes = samples.last("host.limit_bytes")
    used_bytes = _lasting(samples, "host.limit_used_bytes")
    own = [_own_bytes(rank.samples, emulated=emulated) for rank in ranks]
    known = [each for each in own if each is not None]
    if not limit_bytes or used_bytes is None or len(known) < len(own):
        return []
    if used_bytes < FULL_SHARE * limit_bytes or sum(known) < OWN_SHARE * limit_bytes:
        return []
    use = _sum([host_use(rank) for rank in ranks])
    left_bytes = max(limit_bytes - used_bytes, 0)
    held = f"; {_workers_words(use)}" if use.workers and use.workers_bytes else ""
    what = f"Host memory is nearly full: {size_text(left_bytes)} left of {size_text(limit_bytes)}"
    return [
        Finding(
            KIND,
            "warning",
            fitting(f"{what}{held}.", f"{what}."),
            {
                "title": "Host memory is nearly full",
                "series": "host.limit_used_bytes",
                "limit_bytes": limit_bytes,
                "left_bytes": left_bytes,
                "own_bytes": sum(known),
                "workers": use.workers,
                "workers_bytes": use.workers_bytes,
                "pinned_bytes": use.pinned_bytes,
            },
            0.9,
            remedies=advise_host(use, limit_bytes),
            detail=f"The processes of the job hold {size_text(sum(known))}. When the limit of "
            "their control group is reached the kernel ends one of them.",
            subject=HOST,
            ranks=tuple(rank.rank for rank in ranks),
        )
    ]


def _shared(ranks: Sequence[RankEvidence]) -> list[Finding]:
    samples = ranks[0].samples
    size_bytes = samples.last("host.shm_size_bytes")
    used_bytes = _lasting(samples, "host.shm_used_bytes")
    use = _sum([host_use(rank) for rank in ranks])
    if not size_bytes or used_bytes is None or not use.workers or not use.shared_bytes:
        return []
    if used_bytes < FULL_SHARE * size_bytes or use.shared_bytes < 0.5 * used_bytes:
        return []
    left_bytes = max(size_bytes - used_bytes, 0)
    what = f"Shared memory is nearly full: {size_text(left_bytes)} left of {size_text(size_bytes)}"
    room = Remedy(
        "give the container more shared memory",
        "Workers hand their batches over through it.",
        cost="takes effect at the next start",
        fix=f"docker run --shm-size={max(2 * size_bytes // MIB, 1)}m",
    )
    return [
        Finding(
            KIND,
            "warning",
            fitting(f"{what}, in use by {count_text(use.workers, 'DataLoader worker')}."),
            {
                "title": "Shared memory is nearly full",
                "series": "host.shm_used_bytes",
                "limit_bytes": size_bytes,
                "left_bytes": left_bytes,
                "workers": use.workers,
                "shared_bytes": use.shared_bytes,
            },
            0.9,
            remedies=(*advise_shared(use, size_bytes), room),
            detail="A worker that finds no room there ends with a bus error.",
            subject=SHARED,
            ranks=tuple(rank.rank for rank in ranks),
        )
    ]


def _lasting(samples: Rows, name: str) -> int | None:
    """The least of the last while; None while too little is known of it."""
    if not len(samples):
        return None
    since_ns = int(samples.time_ns[-1]) - int(LASTS_S * 1e9)
    values = samples.after(int(np.searchsorted(samples.time_ns, since_ns))).numbers(name)
    values = values[np.isfinite(values)]
    if samples.time_ns[0] > since_ns or len(values) < MIN_READINGS:
        return None
    return int(values.min())


def _own_bytes(samples: Rows, *, emulated: bool) -> int | None:
    """What a process and its workers have written themselves; None is not known."""
    own, workers = samples.last("host.anonymous_bytes"), samples.last("host.workers")
    if own is None:
        return None
    if emulated:
        # What lies on an emulated device lies on the host.
        own -= samples.last("allocated_bytes.all.current") or 0
    if not workers:
        return own
    shares = samples.last("host.workers_pss_bytes")
    return None if shares is None else own + shares


def _sum(uses: Sequence[HostUse]) -> HostUse:
    """Of all processes of a host; its shared memory is the same for all of them."""
    waits = [each.wait_share for each in uses if each.wait_share is not None]
    shared = [each.shared_bytes for each in uses if each.shared_bytes is not None]
    return HostUse(
        _total([each.workers for each in uses]),
        _total([each.workers_bytes for each in uses if each.workers]),
        _total([each.pinned_bytes for each in uses]),
        max(shared, default=None),
        max(waits, default=None),
    )


def _total(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _workers_words(use: HostUse) -> str:
    return f"{count_text(use.workers or 0, 'worker')} hold {size_text(use.workers_bytes)}"
