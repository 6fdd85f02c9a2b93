"""Recorded runs as a ring shows them that has wrapped: the first entries are gone.

Each recorded trace is complete, so the replay of all of it says what was held at any entry. From
the entries after that one and the segments of the end the same must follow. These may differ:

- the size of a block that the state says is guessed: nothing recorded after the start depends on
  it but the counters, until the block is freed;
- where segments are collected by age (``garbage_collection_threshold`` with a limit): how long
  what was free at the start had been free is unknown, so the first collections may choose others;
- where the trace lacks more than its start: ``NOT_IN_THE_TRACE`` of ``recorded_workloads``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest

from tests.support.allocator_traces import TRACES, load_trace
from tests.support.known_calls import with_pool_ids
from tests.support.made_recordings import comparable, cut
from tests.support.recorded_run import load_run, names
from vramscope_analysis.replay import (
    InitialState,
    RecordedReplay,
    Recording,
    infer_capacity,
    initial_state,
    live_blocks,
    replay_recorded,
)
from vramscope_analysis.snapshot import Action

VERSION = (2, 11)
STRIDE = 997
MOST_STRIDES = 6
SEGMENT_EVENTS = 4

# The pool of an entry is in the traces of torch 2.12 on; here it comes from the recorder's notes.
NEEDS_POOL_IDS = ("cuda_graphs__", "pools__")
NOT_IN_THE_TRACE = ("settings__default", "pool_options__default", "pool_options__expandable")
COLLECTED_BY_AGE = ("oom_retry__gc60_split64", "streams__gc60", "unet__gc60")

RUNS = [name for name in (*TRACES, *names()) if name not in NOT_IN_THE_TRACE]


@lru_cache(maxsize=1)
def recording_of(name: str) -> Recording:
    if name in TRACES:
        return load_trace(name).recording
    run = load_run(name)
    recording = Recording.from_snapshot(run.snapshot)
    return with_pool_ids(recording, run) if name.startswith(NEEDS_POOL_IDS) else recording


def limit_of(name: str) -> int | None:
    """The limit of the process, which not every trace tells."""
    return None if name in TRACES else load_run(name).limit_bytes


def positions_of(recording: Recording) -> list[int]:
    """Some multiples of a stride, and just before and after some entries of segments."""
    entries, segments = len(recording.events), recording.events.segment_events
    strides = range(0, entries, STRIDE * max(1, entries // STRIDE // MOST_STRIDES))
    chosen = segments[:: max(1, len(segments) // SEGMENT_EVENTS)].tolist()
    return sorted({*strides, *chosen, *(position + 1 for position in chosen)})


def states_of(
    recording: Recording, positions: list[int], limit_bytes: int | None
) -> Iterator[tuple[InitialState, list[dict[str, Any]]]]:
    """What is inferred at each position, and what a replay of everything holds there."""
    capacity = infer_capacity(recording, limit_bytes=limit_bytes, version=VERSION)
    replay = RecordedReplay(recording, capacity, version=VERSION)
    for position in positions:
        state = initial_state(cut(recording, position))
        replay.advance(position + state.position)
        yield state, comparable(replay.model.segments())
    replay.advance()
    assert (replay.misplaced, replay.comparison.final_mismatches) == (0, 0)


def differing_blocks(found: list[dict[str, Any]], true: list[dict[str, Any]]) -> list[int]:
    """By how much each block in use is too small; everything else must be the same."""
    errors: list[int] = []
    for one, other in zip(found, true, strict=True):
        for key in ("address", "total_size", "stream", "segment_type", "segment_pool_id"):
            assert one[key] == other[key]
        pair = [[b for b in held["blocks"] if b[2] != "inactive"] for held in (one, other)]
        for block, true_block in zip(*pair, strict=True):
            assert (block[0], *block[2:]) == (true_block[0], *true_block[2:])
            if block != true_block:
                errors.append(true_block[1] - block[1])
    return errors


@pytest.mark.parametrize("name", RUNS)
def test_what_was_held_is_inferred(name: str) -> None:
    recording = recording_of(name)
    positions = positions_of(recording)
    inexact = 0
    for state, true in states_of(recording, positions, limit_of(name)):
        assert state.inferred.contradictions == 0
        found = comparable(state.segments)
        if found == true:
            continue
        inexact += 1
        errors = differing_blocks(found, true)
        assert 0 < len(errors) <= state.inferred.guessed_blocks
        assert all(error > 0 for error in errors)
        assert sum(errors) <= state.inferred.uncertain_bytes
    # Few positions have a block whose size is guessed wrongly.
    assert inexact <= 0.25 * len(positions)


@pytest.mark.parametrize("name", [name for name in RUNS if name not in COLLECTED_BY_AGE])
def test_the_rest_is_replayed_exactly(name: str) -> None:
    recording = recording_of(name)
    for part in (1, 3, 5):
        wrapped = cut(recording, len(recording.events) * part // 6)
        report = replay_recorded(wrapped, version=VERSION, limit_bytes=limit_of(name))
        assert report.initial is not None
        assert not report.initial.is_complete
        assert report.is_exact, report.first_mismatches


@pytest.mark.parametrize("name", COLLECTED_BY_AGE)
def test_what_is_collected_by_age_may_differ(name: str) -> None:
    """But only what is collected, and what follows from it: every request is known."""
    recording = recording_of(name)
    wrapped = cut(recording, len(recording.events) // 2)
    report = replay_recorded(wrapped, version=VERSION, limit_bytes=limit_of(name))
    assert report.unknown_frees == 0
    assert report.initial is not None
    assert report.initial.inferred.contradictions == 0


@pytest.mark.parametrize("name", NOT_IN_THE_TRACE)
def test_what_was_live_is_known_whatever_the_settings_were(name: str) -> None:
    """Settings, limits and options of pools that changed are not in a trace; requests are."""
    recording = recording_of(name)
    events = recording.events
    entries = zip(events.actions.tolist(), events.addresses.tolist(), events.sizes, strict=True)
    live: dict[int, int] = {}
    for position, (action, address, size_bytes) in enumerate(entries):
        if position % 101 == 0:
            found = {b.address: b.requested_bytes for b in live_blocks(recording, position)}
            assert found == live
        if action == Action.ALLOC:
            live[address] = size_bytes
        elif action == Action.FREE_COMPLETED:
            del live[address]


@pytest.mark.parametrize("name", [name for name in RUNS if name.startswith(NEEDS_POOL_IDS)])
def test_the_pool_of_what_is_gone_is_counted_as_a_guess(name: str) -> None:
    recording = Recording.from_snapshot(load_run(name).snapshot)
    wrapped = cut(recording, len(recording.events) // 3)
    assert initial_state(wrapped).inferred.guessed_pools > 0
