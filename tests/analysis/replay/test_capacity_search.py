from __future__ import annotations

import random

import pytest

from tests.support.recorded_job import MIB, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings, Block
from vramscope_analysis.replay.capacity import bounded
from vramscope_analysis.replay.capacity_search import CapacitySearch

LIMIT = 448 * MIB


def collecting_job(seed: int, *, empty_cache_every: int = 0) -> RecordedJob:
    settings = AllocatorSettings(garbage_collection_threshold=0.6)
    job = RecordedJob(settings, limit_bytes=LIMIT)
    chosen = random.Random(seed)
    live: list[Block] = []
    for turn in range(400):
        if sum(block.size_bytes for block in live) > 120 * MIB:
            job.free(live.pop(chosen.randrange(len(live))))
        live.append(job.malloc(chosen.randint(1, 30) * MIB))
        if empty_cache_every and not turn % empty_cache_every:
            job.model.empty_cache()
    return job


@pytest.mark.parametrize("seed", range(3))
def test_the_limit_is_found_at_which_garbage_was_collected(seed: int) -> None:
    recording = collecting_job(seed).recording()
    guess = bounded(recording)
    assert guess is not None

    found, until = CapacitySearch(recording).from_guess(guess)

    assert until == len(recording.events)
    assert found.limit_bytes == LIMIT
    assert found.asked_flushes == frozenset()


def test_calls_of_empty_cache_among_them_are_found_as_well() -> None:
    recording = collecting_job(3, empty_cache_every=90).recording()
    guess = bounded(recording)
    assert guess is not None

    found, until = CapacitySearch(recording).from_guess(guess)

    assert until == len(recording.events)
    assert found.limit_bytes == LIMIT


def test_a_search_that_finds_nothing_better_keeps_what_goes_furthest() -> None:
    job = collecting_job(4)
    entries = job.entries
    taken = next(i for i, e in enumerate(entries[200:], 200) if e["action"] == "segment_alloc")
    entries[taken]["size"] += 2 * MIB  # no limit explains that
    recording = job.recording()
    guess = bounded(recording)
    assert guess is not None

    _found, until = CapacitySearch(recording).from_guess(guess)

    assert taken <= until < len(entries)
