"""The finding ``host_growth``: the process, or its workers, take more and more host memory.

Only memory counts that a process has written itself: pages of files and shared ones come and go
with what is read. Whether it will end nobody can tell from its curve: a data set that is read into
memory grows as steadily as a leak. So it stays a suspicion until it is known what keeps it, or
until the memory of the machine is at stake.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Finding, Remedy, Severity
from vramscope_analysis.diagnosis.holder_words import holder_name
from vramscope_analysis.diagnosis.host_culprit import HostCulprit, explained
from vramscope_analysis.diagnosis.host_limit import HostLimit, host_limit
from vramscope_analysis.diagnosis.host_rise import HostRise, host_rise, thinned
from vramscope_analysis.diagnosis.recording_overhead import COLUMN as RECORDING_COLUMN
from vramscope_analysis.diagnosis.recording_overhead import THE_JOBS
from vramscope_analysis.diagnosis.words import (
    count_text,
    fitting,
    place_text,
    rate_text,
    size_text,
)
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence

KIND: Final = "host_growth"
WORKERS: Final = "workers"
RECORDING: Final = "memory history"
_EXPLAINS: Final = 0.05
"""Part of the growth that tensors have to take themselves, in the short time that was looked at."""
_OWN: Final = "host.anonymous_bytes"
_ALLOCATED: Final = "allocated_bytes.all.current"
_SHARES: Final = "host.workers_pss_bytes"


def host_growth(run: RunEvidence) -> list[Finding]:
    """Judge the host memory of each process and of its workers."""
    found = [
        (rank.rank, finding)
        for rank in run.ranks
        for finding in (*_of_process(rank, emulated=run.emulated), *_of_workers(rank))
    ]
    return [replace(finding, ranks=(number,)) for number, finding in found]


def _of_process(rank: RankEvidence, *, emulated: bool) -> list[Finding]:
    rows = thinned(rank.samples, _OWN, _ALLOCATED)
    own = rows.numbers(_OWN)
    if emulated:
        # What lies on an emulated device lies on the host.
        own = own - np.nan_to_num(rows.numbers(_ALLOCATED))
    rise = host_rise(rows, own)
    if rise is None or _is_pinned(rank, rise):
        return []
    if _is_recorded(rank, rise):
        return [_recording(rise)]
    found = explained(rank)
    culprit = None if found is None else found.culprit
    limit = host_limit(rank.samples, rise.bytes_per_s)
    severity: Severity = "warning" if found is not None or limit.is_near else "info"
    summary = _sentence(rise, found)
    return [
        Finding(
            KIND,
            severity,
            summary,
            _evidence(rise, limit, _OWN),
            0.95 if culprit is not None else 0.6,
            culprits=() if culprit is None else (culprit,),
            remedies=_remedies(found, rise),
            detail=f"{_device_words(rank, rise)}{limit.words}",
            subject="" if culprit is None else place_text(culprit.file, culprit.line),
            stage="suspected" if culprit is None else "confirmed",
            since_step=rise.since_step,
        )
    ]


def _sentence(rise: HostRise, found: HostCulprit | None) -> str:
    pace = _pace(rise)
    if found is None:
        return fitting(f"The process took {size_text(rise.grown_bytes)} more host memory: {pace}.")
    place = place_text(found.culprit.file, found.culprit.line)
    name = holder_name(found.culprit.held_by)
    what = "graph history" if found.is_graph else "tensors"
    kept = f": {what} kept by {name}" if name else f": {what}"
    return fitting(
        f"Host memory grows by {pace} at {place}{kept}.",
        f"Host memory grows by {pace} at {place}.",
    )


def _remedies(found: HostCulprit | None, rise: HostRise) -> tuple[Remedy, ...]:
    if found is None:
        return ()
    # Tensors that take next to nothing keep something else alive: the graph that led to them.
    is_graph = found.is_graph or (found.culprit.bytes or 0) < _EXPLAINS * rise.grown_bytes
    number = Remedy(
        "keep numbers in place of tensors",
        "A number holds no graph and no memory of a tensor.",
        rise.grown_bytes,
        ".item() waits for the device: once in a while, not in each step",
        "value.item()  # every n steps",
    )
    if not is_graph:
        return (number,)
    detach = Remedy(
        "detach what is kept from its graph",
        "A tensor with a history keeps the whole graph that led to it, on the host.",
        rise.grown_bytes,
        "",
        "value.detach()",
    )
    return (detach, number)


def _of_workers(rank: RankEvidence) -> list[Finding]:
    samples = rank.samples
    rows = thinned(samples, _SHARES)
    # Copies have an end, and become fewer: most of them come in the first minute.
    rise = host_rise(rows, rows.numbers(_SHARES), may_slow=True)
    if rise is None:
        return []
    since = samples.after(int(np.searchsorted(samples.time_ns, rise.start_ns)))
    workers = since.numbers("host.workers")
    workers = workers[np.isfinite(workers)]
    if not len(workers) or workers.min() < 1 or workers.min() != workers.max():
        return []  # others have come or gone
    count = int(workers[-1])
    limit = host_limit(samples, rise.bytes_per_s)
    resident = since.numbers("host.workers_rss_bytes")
    resident = resident[np.isfinite(resident)]
    # A copy takes the place of a page that was counted before; what is new is counted anew.
    is_copies = len(resident) > 0 and resident[-1] - resident[0] < 0.5 * rise.grown_bytes
    # A process that ends has let go of the data by now.
    parent = since.numbers(_OWN)
    parent = parent[np.isfinite(parent)]
    most = count * int(parent.max()) if is_copies and len(parent) else None
    cause = "copies of pages they share" if is_copies else "what they keep for themselves"
    whose = count_text(count, "DataLoader worker")
    return [
        Finding(
            KIND,
            "warning" if limit.is_near else "info",
            fitting(f"{whose} took {size_text(rise.grown_bytes)} more host memory: {cause}."),
            {
                **_evidence(rise, limit, _SHARES),
                "workers": count,
                "at_most_bytes": most,
                "is_copies": is_copies,
            },
            0.85 if is_copies else 0.6,
            remedies=_worker_remedies(rise, count, is_copies=is_copies),
            detail=_worker_detail(most, is_copies=is_copies) + limit.words,
            subject=WORKERS,
            since_step=rise.since_step,
        )
    ]


def _worker_detail(most: int | None, *, is_copies: bool) -> str:
    if not is_copies:
        return "Their resident memory grows with it. The device has no part in it."
    bound = "" if most is None else f" It ends at {size_text(most)} at most."
    return (
        "Reading a Python object writes its reference count, and a page that was shared since the "
        f"fork becomes a worker's own.{bound} The device has no part in it."
    )


def _worker_remedies(rise: HostRise, count: int, *, is_copies: bool) -> tuple[Remedy, ...]:
    fewer = Remedy(
        f"use fewer workers than {count}",
        "Each of them has copies of its own.",
        rise.grown_bytes // count,
        "batches may be late",
    )
    if not is_copies:
        return (fewer,)
    arrays = Remedy(
        "keep the data set in arrays or in one serialised buffer",
        "One object has one reference count: the pages behind it stay shared.",
        rise.grown_bytes,
        "items have to be decoded when they are read",
    )
    return (arrays, fewer)


def _recording(rise: HostRise) -> Finding:
    return Finding(
        KIND,
        "warning",
        fitting(f"The recorded memory history takes {_pace(rise)} of host memory, without an end."),
        {"series": _OWN, "grown_bytes": rise.grown_bytes, "since_step": rise.since_step},
        0.8,
        remedies=(
            Remedy(
                "give the recording a bound",
                "The oldest entries then make room for new ones.",
                None,
                "",
                "torch.cuda.memory._record_memory_history(max_entries=100_000)",
            ),
        ),
        detail="The job records every allocation itself (_record_memory_history).",
        subject=RECORDING,
        since_step=rise.since_step,
    )


def _is_recorded(rank: RankEvidence, rise: HostRise) -> bool:
    """Whether the job has recorded its memory history all the while."""
    rows = rank.steps
    codes = rows.after(int(np.searchsorted(rows.time_ns, rise.start_ns))).numbers(RECORDING_COLUMN)
    return len(codes) > 0 and bool((codes == THE_JOBS).mean() > 0.9)


def _is_pinned(rank: RankEvidence, rise: HostRise) -> bool:
    """Whether most of it is pinned memory, which has a finding of its own."""
    since = rank.samples.after(int(np.searchsorted(rank.samples.time_ns, rise.start_ns)))
    pinned = since.numbers("host.pinned_reserved_bytes")
    pinned = pinned[np.isfinite(pinned)]
    return len(pinned) > 1 and pinned[-1] - pinned[0] >= 0.5 * rise.grown_bytes


def _device_words(rank: RankEvidence, rise: HostRise) -> str:
    """That the device is not concerned, where that is so."""
    floors = rank.samples.after(int(np.searchsorted(rank.samples.time_ns, rise.start_ns)))
    allocated = floors.numbers(_ALLOCATED)
    allocated = allocated[np.isfinite(allocated)]
    quarter = len(allocated) // 4
    if quarter == 0:
        return ""
    # The newest alone may be of a job that has just let go of all.
    grown = float(np.median(allocated[-quarter:]) - np.median(allocated[:quarter]))
    if grown >= 0.1 * rise.grown_bytes:
        return ""
    return "The memory of the device does not grow with it. "


def _pace(rise: HostRise) -> str:
    if rise.bytes_per_step is not None:
        return rate_text(rise.bytes_per_step)
    return rate_text(rise.bytes_per_s, "second")


def _evidence(rise: HostRise, limit: HostLimit, series: str) -> dict[str, Any]:
    return {
        "series": series,
        "grown_bytes": rise.grown_bytes,
        "seconds": round(rise.seconds, 1),
        "slope_bytes_per_step": rise.bytes_per_step,
        "since_step": rise.since_step,
        "host_limit_bytes": limit.limit_bytes,
        "host_free_bytes": limit.free_bytes,
        "seconds_left": limit.seconds_left,
    }
