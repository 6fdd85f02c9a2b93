"""The finding ``near_oom``: peaks grow, for a reason that is no leak, and will soon not fit.

Growth that may be a leak carries its own forecast. Here is what remains: batches that become
longer, a model that is enlarged. A schedule may end at any time, so it is only said where little is
left already.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.floors import Floors
from vramscope_analysis.diagnosis.forecast import PEAK, Forecast, forecast_of
from vramscope_analysis.diagnosis.growth_reading import growth_reading
from vramscope_analysis.diagnosis.head_room import allocator_limit
from vramscope_analysis.diagnosis.trend import Growth, growth_of
from vramscope_analysis.diagnosis.words import count_text, rate_text, size_text
from vramscope_analysis.evidence.run_evidence import RankEvidence

KIND: Final = "near_oom"
SUBJECT: Final = "growth"

FULL_SHARE: Final = 0.85
"""Of what the process may have, the peaks have to need so much."""
_RECENT_ROWS: Final = 64
_URGENT_S: Final = 3600.0


def near_oom(rank: RankEvidence) -> list[Finding]:
    """Judge whether peaks that grow will soon not fit any more.

    Args:
        rank: what is known of it.
    """
    limit = allocator_limit(rank)
    if limit is None or not _is_nearly_full(rank, limit):
        return []
    reading = growth_reading(rank)
    if reading.growth is not None and reading.cause == "added":
        return []  # told by the finding about that growth
    growth = _growth_of_peaks(rank, reading.floors)
    if growth is None:
        return []
    forecast = forecast_of(rank, growth, is_confirmed=False, series=PEAK)
    if forecast is None or not forecast.is_worth_saying:
        return []
    return [_finding(growth, forecast)]


def _is_nearly_full(rank: RankEvidence, limit: int) -> bool:
    recent = rank.steps.numbers(PEAK)[-_RECENT_ROWS:]
    recent = recent[~np.isnan(recent)]
    return len(recent) > 0 and float(np.median(recent)) >= FULL_SHARE * limit


def _growth_of_peaks(rank: RankEvidence, floors: Floors) -> Growth | None:
    peaks = rank.steps.numbers(PEAK)[floors.row]
    known = ~np.isnan(peaks)
    if not known.any():
        return None
    # Longer batches are as many tensors as before: blocks are not asked for.
    return growth_of(
        replace(
            floors,
            step=floors.step[known],
            time_ns=floors.time_ns[known],
            allocated=peaks[known],
            blocks=None,
            row=floors.row[known],
        )
    )


def _finding(growth: Growth, forecast: Forecast) -> Finding:
    pace = rate_text(growth.slope_bytes)
    return Finding(
        KIND,
        "critical" if forecast.late_s < _URGENT_S else "warning",
        f"{forecast.words[:-1]}, if the peak goes on growing by {pace}.",
        {
            "series": PEAK,
            "since_step": growth.since_step,
            "slope_bytes_per_step": round(growth.slope_bytes, 1),
            "slope_error_bytes_per_step": round(growth.slope_error_bytes, 1),
            "grown_bytes": int(growth.grown_bytes),
            "base_bytes": int(growth.base_bytes),
            "forecast": forecast.evidence(),
            "facts": [
                "Memory at the ends of steps does not grow by new tensors: it is no leak.",
                f"Steps need {size_text(growth.grown_bytes)} more than at step "
                f"{count_text(growth.since_step)}.",
            ],
        },
        round(forecast.confidence, 2),
        detail=(
            f"Since step {count_text(growth.since_step)} steps need more and more: longer batches, "
            "a larger model or a schedule. Tensors that stay are not behind it."
        ),
        subject=SUBJECT,
        since_step=growth.since_step,
    )
