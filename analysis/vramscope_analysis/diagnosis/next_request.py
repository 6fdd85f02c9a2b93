"""Whether what the next step needs in one piece is nowhere to be had without a flush.

It is said only where all that is known agrees: every recorded step asked for as much, no piece of
its stream is as large even if all is freed that is not there for good, the device has not enough
left, all pieces together would do, and the steps themselves do not show the opposite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.request_fit import Place, RequestFit, is_large, request_fit
from vramscope_analysis.diagnosis.words import MIB
from vramscope_analysis.evidence.recorded_requests import Request
from vramscope_analysis.evidence.run_evidence import RankEvidence

BEFORE_STEPS: Final = 10
_MORE_BYTES: Final = MIB
"""By so much more in use than in the steps before: what held for them does not any more."""


@dataclass(frozen=True)
class NextRequest:
    """A request that finds no place.

    Args:
        request: what each recorded step asked for.
        fit: what there is.
        place: ``flush`` or ``nowhere``.
    """

    request: Request
    fit: RequestFit
    place: Place

    @property
    def largest_bytes(self) -> int:
        """The largest piece that there is: a free block, or what the device has left."""
        return max(self.fit.largest_free_bytes, self.fit.room_bytes)

    @property
    def free_bytes(self) -> int:
        """All pieces together."""
        return self.fit.free_bytes + self.fit.room_bytes


def next_request(rank: RankEvidence) -> NextRequest | None:
    """The request of the next step that finds no place now; None if there is none for sure."""
    layout, requests = rank.layout, None if rank.window is None else rank.window.requests
    if layout is None or requests is None or requests.every_step is None:
        return None
    request = requests.every_step
    fit = request_fit(rank, request.stream)
    if fit is None or not layout.is_step_end or not is_large(request.bytes):
        return None
    place = fit.place_of(request.bytes, at_best=True)
    if place not in ("flush", "nowhere"):
        return None
    if fit.free_bytes + fit.room_bytes < request.bytes:
        return None  # there is too little, in pieces or not
    if not _steps_agree(rank, layout.step):
        return None
    return NextRequest(request, fit, place)


def _steps_agree(rank: RankEvidence, step: int | None) -> bool:
    """Whether what the steps did can be so: they asked for as much, and found a place or not."""
    rows = rank.steps.after(-BEFORE_STEPS)
    flushes = np.diff(rows.numbers("num_alloc_retries"))
    if rows.number is None or step is None or step not in rows.number[1:]:
        return False  # the look is of a time long ago
    number = rows.number[1:]
    since = flushes[number > step]
    if not (since > 0).all():
        return False  # a step after the look went without a flush
    # One without a flush that ended as this look begins has found in it what it asked for.
    if flushes[number == step][-1] > 0 or len(since):
        return True
    return _has_more_in_use(rank, step)


def _has_more_in_use(rank: RankEvidence, step: int) -> bool:
    """Whether more stays at the end of this step than at the end of those before."""
    rows = rank.steps.after(-BEFORE_STEPS)
    active = rows.numbers("active_bytes.all.current")
    if rows.number is None:
        return False
    at, earlier = active[rows.number == step], active[rows.number < step]
    if not len(at) or not len(earlier):
        return False
    return bool(at[-1] >= np.fmax.reduce(earlier) + _MORE_BYTES)
