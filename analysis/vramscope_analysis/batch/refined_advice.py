"""Advice whose waste of segments was replayed instead of assumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from vramscope_analysis.batch.batch_advice import BatchAdvice
from vramscope_analysis.batch.scaled_window import ScaledWindow

_ROOMS: Final = (1.0, 0.99, 1.01)
WORSE: Final = 0.98
"""The low end has to fit into so much of the room."""
_BEYOND: Final = 12
_MOST_MORE: Final = 12
"""So many sizes are tried of the twelfth part beyond the largest that was found."""
_NEAR: Final = 0.03
_MOST: Final = 1.5
"""Where nothing is known of the high end, so many times the advice is looked at."""


def refined_advice(
    advice: BatchAdvice,
    window: ScaledWindow,
    recorded_batch: int,
    pause: Callable[[], None] | None = None,
) -> BatchAdvice:
    """Look for the largest batch with which the window would have fitted.

    Args:
        advice: what follows from the steps.
        window: steps of this rank.
        recorded_batch: samples of a forward pass in it.
        pause: called after each replay.

    Raises:
        ValueError: the window does not show what the steps do.
    """
    scale = _scale(advice, window, recorded_batch)
    allowed_bytes = advice.room.allowed_bytes
    state_bytes = advice.model.state_bytes

    def passes(batch: int, room_bytes: float) -> bool:
        """Both a change while it runs and a new start."""
        found = window.changed(scale(batch), int(room_bytes)).fits
        found = found and window.begun(scale(batch), int(room_bytes), state_bytes).fits
        if pause is not None:
            pause()
        return found

    def fits(batch: int, room_bytes: float) -> bool:
        # By chance pieces fit into each other in a room of one size and not in the next, and what
        # fits into less does not always fit into more.
        if not passes(batch, advice.room.limit_bytes):
            return False
        first, second = (passes(batch, each * room_bytes) for each in _ROOMS[:2])
        return first if first == second else passes(batch, _ROOMS[2] * room_bytes)

    high = max(advice.high or int(_MOST * advice.batch) + 1, advice.batch)
    if advice.model.is_varying:
        high = advice.batch  # a window of a few lengths does not show how all of them would lie
    batch = _largest(1, high, lambda n: fits(n, allowed_bytes))
    if batch < 1:
        raise ValueError("expected at least one sample to fit, got none")
    low = _largest(1, batch, lambda n: fits(n, WORSE * allowed_bytes))
    return replace(
        advice,
        batch=batch,
        low=max(low, 1),
        high=None if advice.high is None else max(advice.high, batch),
        is_replayed=True,
        retries=window.changed(scale(batch), allowed_bytes).retries,
    )


def _scale(
    advice: BatchAdvice, window: ScaledWindow, recorded_batch: int
) -> Callable[[int], float]:
    """How much larger what depends on the batch is, by the batch."""
    model = advice.model
    own = window.changed(1.0, None)
    seen = model.at_most(recorded_batch)
    if abs(own.peak_bytes - seen) <= _NEAR * seen and not model.is_varying:
        scaled = window.changed(advice.batch / recorded_batch, None).peak_bytes
        least, most = model.at_least(advice.batch), model.at_most(advice.batch)
        if (1 - _NEAR) * least <= scaled <= (1 + _NEAR) * most:
            return lambda batch: batch / recorded_batch
    moving = own.peak_bytes - model.fixed_bytes
    if moving <= 0:
        raise ValueError("expected a window that needs more than what does not change, got less")
    # As long as the longest samples, and as large as the steps say: only the waste is replayed.
    return lambda batch: (model.at_most(batch) - model.fixed_bytes) / moving


def _largest(low: int, high: int, fits: Callable[[int], bool]) -> int:
    found, last, first = low - 1, high, low
    while low <= high:
        middle = (low + high + 1) // 2
        if fits(middle):
            found, low = middle, middle + 1
        else:
            high = middle - 1
    # A few sizes do not fit and larger ones do: segments are rounded up.
    beyond = max(found // _BEYOND, 2)
    more = range(found + 1, min(found + beyond, last) + 1, max(beyond // _MOST_MORE, 1))
    return next((n for n in reversed(more) if n >= first and fits(n)), found)
