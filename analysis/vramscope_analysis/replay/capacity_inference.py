"""Finds the capacity that a recorded job must have had."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

from vramscope_analysis.allocator import Version
from vramscope_analysis.replay.capacity import (
    Capacity,
    bounded,
    given_capacity,
    has_limit,
    unbounded,
)
from vramscope_analysis.replay.capacity_search import CapacitySearch
from vramscope_analysis.replay.flushes import flushes_of
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Action

_INFERRED: Final[WeakKeyDictionary[Recording, dict[Version, Capacity]]] = WeakKeyDictionary()
"""Inferring may take replays, and advice asks for the same recording again and again."""


def infer_capacity(
    recording: Recording,
    *,
    capacity_bytes: int | None = None,
    limit_bytes: int | None = None,
    version: Version | None = None,
) -> Capacity:
    """What bound the recorded job: as given, else inferred from what was refused.

    A recorded ``oom`` is certain. Without one, flushes of the cache may have been the last retry
    before it (``release_cached_blocks``), garbage collection, or ``empty_cache``: a limit is
    believed if the replayed job, given that much memory, flushes at the same moments.

    Args:
        recording: the job.
        capacity_bytes: what the device had, if known.
        limit_bytes: the process's own limit, if known.
        version: torch release that recorded; None is the newest that writes such a snapshot.
    """
    if capacity_bytes is not None or limit_bytes is not None:
        return given_capacity(recording, capacity_bytes, limit_bytes)
    followed = recording.version if version is None else version
    inferred = _INFERRED.setdefault(recording, {})
    if followed not in inferred:
        inferred[followed] = _infer(recording, followed)
    return inferred[followed]


def search_capacity(recording: Recording, guess: Capacity, version: Version) -> Capacity:
    """Better than a guess under which a replay has shown mismatches, if there is something better.

    Remembered: from here on, :func:`infer_capacity` returns it.
    """
    found, _until = CapacitySearch(recording, version).from_guess(guess)
    _INFERRED.setdefault(recording, {})[version] = found
    return found


def _infer(recording: Recording, version: Version) -> Capacity:
    guesses = _guesses(recording)
    if not guesses:
        return unbounded(recording)
    failed = bool((recording.events.actions == Action.OOM).any())
    if guesses[0].source == "inferred" and failed and not _threshold(recording):
        return guesses[0]  # the bounds alone say which requests were refused
    found, refused_until = _furthest(recording, version, guesses)
    if failed:
        return found
    without, asked_until = CapacitySearch(recording, version).from_guess(unbounded(recording))
    if refused_until == asked_until:
        return found if _is_evidence(recording, found) else without
    return found if refused_until > asked_until else without


def _guesses(recording: Recording) -> list[Capacity]:
    """What may have bound a job, the likelier first.

    A threshold alone collects nothing: without a limit of the process it is never looked at
    (``garbage_collect_cached_blocks``). So the device alone may be behind everything.
    """
    guesses = [bounded(recording)]
    if _threshold(recording) and not has_limit(recording):
        guesses.insert(0, bounded(recording, by_device=True))
    return [guess for guess in guesses if guess is not None]


def _furthest(
    recording: Recording, version: Version, guesses: list[Capacity]
) -> tuple[Capacity, int]:
    """The guess that explains most, after a search from each, and where it first fails."""
    entries = len(recording.events)
    best, furthest = guesses[0], -1
    for guess in guesses:
        found, until = CapacitySearch(recording, version).from_guess(guess)
        if until > furthest:
            best, furthest = found, until
        if furthest >= entries:
            break
    return best, furthest


def _is_evidence(recording: Recording, capacity: Capacity) -> bool:
    """Whether there is more than one flush that a cap explains, or one with a stack.

    One alone may be chance. Garbage collection that gave back no less than ``empty_cache`` shows no
    limit either: a job that sets a threshold and no limit never collects.
    """
    threshold = _threshold(recording)
    flushes = flushes_of(recording)
    refused = [flush for flush in flushes if capacity.refuses(flush)]
    collected = [flush for flush in flushes if capacity.collects(flush, threshold)]
    with_stack = any(recording.events.stacks[flush.first] >= 0 for flush in refused + collected)
    return with_stack or len(refused) > 1


def _threshold(recording: Recording) -> float:
    return recording.settings.garbage_collection_threshold
