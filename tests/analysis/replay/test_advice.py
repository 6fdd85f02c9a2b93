from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from tests.support.allocator_traces import FOLDER
from tests.support.made_recordings import cut
from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.allocator.settings import MIB
from vramscope_analysis.replay import Recording
from vramscope_analysis.replay.advice import (
    Advice,
    Candidate,
    advise,
    candidates,
    compare,
    ranked,
    recommended,
)
from vramscope_analysis.replay.capacity import Capacity
from vramscope_analysis.replay.prediction_result import OutOfMemory, Prediction
from vramscope_analysis.snapshot import read_snapshot

DEFAULTS = AllocatorSettings()
RECORDED = Candidate(DEFAULTS, is_recorded=True)
EXPANDABLE = Candidate(replace(DEFAULTS, expandable_segments=True))
SPLIT = Candidate(replace(DEFAULTS, max_split_size_bytes=64 * MIB))
DIVIDED = Candidate(replace(DEFAULTS, roundup_power2_divisions=(2,) * 16))


@cache
def recording(name: str) -> Recording:
    return Recording.from_snapshot(read_snapshot(FOLDER / f"{name}.pickle.gz"))


@cache
def advice_for(name: str) -> tuple[Advice, ...]:
    return tuple(advise(recording(name)))


def by_text(advice: tuple[Advice, ...]) -> dict[str, Advice]:
    return {each.text: each for each in advice}


def prediction(
    peak_mib: int,
    *,
    device_allocs: int = 100,
    device_frees: int = 0,
    retries: int = 0,
    waste_mib: int = 0,
    oom_event: int | None = None,
) -> Prediction:
    """What a replay could have said."""
    peak_bytes = peak_mib * MIB
    oom = None if oom_event is None else OutOfMemory(oom_event, 0, None, 1, 1, 1, 1, 1, peak_bytes)
    return Prediction(
        settings=DEFAULTS,
        version=(2, 11),
        capacity=Capacity(None, None, 0, None, "unbounded"),
        events=1000,
        peak_reserved_bytes=peak_bytes,
        peak_allocated_bytes=peak_bytes,
        peak_active_bytes=peak_bytes,
        peak=None,
        fragmentation_at_peak=0.0,
        rounding_waste_at_peak_bytes=waste_mib * MIB,
        device_allocs=device_allocs,
        device_frees=device_frees,
        retries=retries,
        ooms=int(oom is not None),
        oom=oom,
        end=None,
        counters={},
    )


def best(baseline: Prediction, **others: Prediction) -> Advice | None:
    """What is recommended when the recorded settings and others were tried."""
    named = {"expandable": EXPANDABLE, "split": SPLIT, "divided": DIVIDED}
    tried = [(RECORDED, baseline), *((named[name], each) for name, each in others.items())]
    return recommended(ranked([compare(*each, RECORDED, baseline) for each in tried]))


def order(*predictions: Prediction) -> list[int]:
    """Places of the given predictions, best first; the first is that of the recorded settings."""
    settings = (RECORDED, EXPANDABLE, SPLIT, DIVIDED)
    advice = [
        compare(candidate, each, RECORDED, predictions[0])
        for candidate, each in zip(settings, predictions, strict=False)
    ]
    return [advice.index(each) for each in ranked(advice)]


# ------------------------------------------------------------------------------------ real jobs


def test_a_fragmenting_job_is_advised_what_really_helped_it() -> None:
    advice = advice_for("varlen__default")
    advised = recommended(advice)
    assert advised is not None
    assert advised is advice[0]
    assert advised.text == "expandable_segments:True"
    # Both numbers were measured on the GPU: each run reserved that much.
    assert advised.prediction.peak_reserved_bytes == 2298 * MIB
    assert advised.gain_bytes == (3212 - 2298) * MIB
    assert advised.changes == 1


@pytest.mark.parametrize(
    ("text", "measured_mib"),
    [
        ("max_split_size_mb:128", 3986),
        ("roundup_power2_divisions:8", 3368),
        ("expandable_segments:True", 2298),
        ("", 3212),
    ],
)
def test_settings_are_ranked_by_what_was_really_measured(text: str, measured_mib: int) -> None:
    found = by_text(advice_for("varlen__default"))[text]
    measured_bytes = measured_mib * MIB
    assert found.prediction.peak_reserved_bytes == pytest.approx(measured_bytes, rel=0.01)
    assert found.gain_bytes == pytest.approx(3212 * MIB - measured_bytes, abs=0.01 * measured_bytes)


@pytest.mark.parametrize("name", ["conv__default", "hf__default"])
def test_a_steady_job_is_told_to_keep_its_settings(name: str) -> None:
    assert recommended(advice_for(name)) is None


def test_the_settings_that_help_already_are_kept() -> None:
    advice = advice_for("lightning__expandable")
    assert recommended(advice) is None
    assert advice[0].candidate.is_recorded
    # Recorded without them, the same job reserved 546 MiB.
    assert by_text(advice)[""].gain_bytes == (276 - 546) * MIB


def test_a_job_that_ran_out_of_memory_is_told_what_goes_further() -> None:
    advice = advice_for("oom__default")
    advised = recommended(advice)
    assert advised is not None
    assert advised.text == "expandable_segments:True"
    assert advised.prediction.oom is None
    now = next(each for each in advice if each.candidate.is_recorded)
    assert now.prediction.oom is not None
    assert advised.more_retries == -now.prediction.retries < 0
    failed = [each.prediction.oom is not None for each in advice]
    assert failed == sorted(failed), "what runs out of memory comes last"


def test_costs_are_counted_against_the_recorded_settings() -> None:
    advice = by_text(advice_for("varlen__default"))
    now, divided = advice[""], advice["roundup_power2_divisions:2"]
    assert (now.gain_bytes, now.more_device_allocs, now.more_rounding_waste_bytes) == (0, 0, 0)
    # Rounding to two sizes per power of two wastes a sixth on average.
    assert 300 * MIB < divided.more_rounding_waste_bytes < 700 * MIB
    split = advice["max_split_size_mb:64"]
    assert split.more_device_allocs > 0
    assert split.more_device_allocs == split.prediction.device_allocs - now.prediction.device_allocs


def test_collection_needs_a_limit_and_says_where_it_is_from() -> None:
    assumed = by_text(advice_for("conv__default"))["garbage_collection_threshold:0.8"].candidate
    assert assumed.limit_is_assumed
    assert assumed.limit_bytes == recording("conv__default").peak_reserved_bytes
    given = by_text(tuple(advise(recording("conv__default"), capacity_bytes=8192 * MIB)))
    limited = given["garbage_collection_threshold:0.8"].candidate
    assert (limited.limit_bytes, limited.limit_is_assumed) == (8192 * MIB, False)
    assert given["expandable_segments:True"].candidate.limit_bytes is None
    # The recording ran out of memory: that says how much there was.
    inferred = by_text(advice_for("oom__default"))["garbage_collection_threshold:0.8"].candidate
    assert (inferred.limit_bytes, inferred.limit_is_assumed) == (3072 * MIB, False)


def test_a_smaller_device_is_taken_into_account() -> None:
    capacity_bytes = 2400 * MIB
    advice = advise(recording("varlen__default"), capacity_bytes=capacity_bytes)
    advised = recommended(advice)
    assert advised is not None
    assert advised.text == "expandable_segments:True"
    now = by_text(tuple(advice))[""]
    assert now.prediction.oom is not None
    split = by_text(tuple(advice))["max_split_size_mb:64"]
    assert split.prediction.oom is None, "oversize blocks are given back one by one"
    assert split.prediction.retries > 0
    assert advice.index(split) < advice.index(now)
    assert all(each.prediction.peak_reserved_bytes <= capacity_bytes for each in advice)


def test_progress_runs_once_over_everything() -> None:
    calls: list[tuple[int, int]] = []
    advice = advise(recording("graphs__default"), progress=lambda *call: calls.append(call))
    totals = {total for _, total in calls}
    assert totals == {len(advice) * len(recording("graphs__default").events)}
    done = [at for at, _ in calls]
    assert done == sorted(done)
    assert done[-1] == totals.pop()


# ------------------------------------------------------------------------------------- the grid


def test_the_grid_varies_one_option_at_a_time() -> None:
    first, *grid = candidates(DEFAULTS)
    assert first == RECORDED
    assert len(grid) == 12
    assert len({each.settings for each in grid}) == len(grid)
    assert all(compare_changes(each) == 1 for each in grid)


def test_a_limit_is_a_change_too() -> None:
    collecting = replace(DEFAULTS, garbage_collection_threshold=0.6)
    assert compare_changes(Candidate(collecting)) == 1
    assert compare_changes(Candidate(collecting, limit_bytes=MIB)) == 2


def compare_changes(candidate: Candidate) -> int:
    return compare(candidate, prediction(1), RECORDED, prediction(1)).changes


def test_the_grid_of_a_tuned_job_has_the_defaults_and_keeps_what_it_does_not_vary() -> None:
    recorded = replace(
        DEFAULTS,
        expandable_segments=True,
        garbage_collection_threshold=0.7,
        large_segment_bytes=64 * MIB,
    )
    first, *grid = candidates(recorded)
    assert (first.settings, first.is_recorded) == (recorded, True)
    assert not any(each.is_recorded for each in grid)
    assert replace(DEFAULTS, large_segment_bytes=64 * MIB) in {each.settings for each in grid}
    assert {each.settings.large_segment_bytes for each in grid} == {64 * MIB}
    # PyTorch refuses max_split_size_mb below the size of large segments.
    sizes = {each.settings.max_split_size_bytes // MIB for each in grid}
    assert 32 not in sizes
    assert {64, 128, 256, 512} < sizes


def test_recorded_settings_of_the_grid_are_tried_once() -> None:
    grid = list(candidates(EXPANDABLE.settings))
    assert [each.is_recorded for each in grid if each.settings == EXPANDABLE.settings] == [True]
    assert DEFAULTS in {each.settings for each in grid}


# ------------------------------------------------------------------------------------- the order


def test_no_out_of_memory_comes_before_any() -> None:
    assert order(prediction(100, oom_event=7), prediction(900, retries=9)) == [1, 0]


def test_of_those_that_run_out_the_one_that_gets_further_comes_first() -> None:
    assert order(prediction(100, oom_event=7), prediction(900, oom_event=8)) == [1, 0]


def test_no_retries_come_before_a_lower_peak() -> None:
    assert order(prediction(1000), prediction(500, retries=1)) == [0, 1]


def test_what_needs_a_limit_that_nobody_gave_comes_after_what_needs_none() -> None:
    collecting = replace(DEFAULTS, garbage_collection_threshold=0.6)
    assumed = Candidate(collecting, limit_bytes=1000 * MIB, limit_is_assumed=True)
    given = replace(assumed, limit_is_assumed=False)
    now, better, best = prediction(1000), prediction(900), prediction(500)

    def texts(collector: Candidate, other: Prediction) -> list[str]:
        tried = [(RECORDED, now), (collector, best), (EXPANDABLE, other)]
        return [each.text for each in ranked([compare(*each, RECORDED, now) for each in tried])]

    gc, expandable = "garbage_collection_threshold:0.6", "expandable_segments:True"
    assert texts(assumed, better) == [expandable, gc, ""]
    assert texts(given, better) == [gc, expandable, ""]
    # Alone, it is the best that there is.
    assert texts(assumed, prediction(1100)) == [gc, "", expandable]


def test_a_named_release_counts_for_what_the_recording_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []

    def inferred(*_: object, **options: object) -> Capacity:
        asked.append(options["version"])
        return Capacity(None, None, 0, None, "unbounded")

    monkeypatch.setattr("vramscope_analysis.replay.advice.infer_capacity", inferred)
    advise(recording("graphs__default"), version=(2, 12))
    assert asked == [(2, 12)]


def test_a_lower_peak_comes_before_fewer_allocations() -> None:
    assert order(prediction(1000, device_allocs=1), prediction(980, device_allocs=99)) == [1, 0]


def test_peaks_within_a_percent_are_equal_and_fewer_allocations_decide() -> None:
    assert order(prediction(1000, device_allocs=50), prediction(991, device_allocs=51)) == [0, 1]


def test_of_equals_the_recorded_settings_come_first() -> None:
    assert order(prediction(1000), prediction(999), prediction(1000)) == [0, 1, 2]


def test_fewer_allocations_come_before_fewer_changes() -> None:
    both = Candidate(replace(EXPANDABLE.settings, max_split_size_bytes=64 * MIB))
    now, few, many = (prediction(1000, device_allocs=allocs) for allocs in (300, 100, 200))
    tried = [(RECORDED, now), (EXPANDABLE, many), (SPLIT, many), (both, few)]
    advice = ranked([compare(*each, RECORDED, now) for each in tried])
    assert [each.changes for each in advice] == [2, 1, 1, 0]


def test_a_row_of_small_differences_does_not_make_a_large_one_equal() -> None:
    # Each within 1 % of the next, the last 2.4 % above the first, and cheaper.
    peaks = [(1024, 1), (1016, 2), (1008, 3), (1000, 4)]
    given = [prediction(peak, device_allocs=allocs) for peak, allocs in peaks]
    assert order(*given) == [2, 3, 0, 1]


@pytest.mark.parametrize(
    ("now_mib", "then_mib", "is_advised"),
    [
        (1000, 936, True),  # 64 MiB
        (1000, 937, False),  # 63 MiB: 6 %, but nobody would notice
        (10_000, 9800, True),  # 2 %
        (10_000, 9801, False),  # 199 MiB, but below 2 %: as large as what runs differ by
        (1000, 1100, False),
    ],
)
def test_a_change_must_be_worth_it(now_mib: int, then_mib: int, is_advised: bool) -> None:
    advised = best(prediction(now_mib), expandable=prediction(then_mib))
    assert (advised is not None) == is_advised


def test_avoiding_a_failure_or_retries_is_worth_any_number_of_bytes() -> None:
    failed, retried = prediction(900, oom_event=5), prediction(900, retries=2)
    assert best(failed, expandable=prediction(950)) is not None
    assert best(retried, expandable=prediction(950)) is not None
    assert best(failed, expandable=prediction(100, oom_event=6)) is None
    assert best(prediction(900), expandable=prediction(100, retries=1)) is None


def test_the_best_that_is_worth_it_is_advised() -> None:
    # Within 1 % of each other: the cheaper one comes first.
    cheap, dear = prediction(900, device_allocs=10), prediction(892, device_allocs=500)
    advised = best(prediction(1000), split=dear, expandable=cheap)
    assert advised is not None
    assert advised.candidate == EXPANDABLE
    # The cheapest of the equals saves less than 64 MiB, the next one enough.
    cheap, dear = prediction(937, device_allocs=10), prediction(930, device_allocs=500)
    advised = best(prediction(1000), split=dear, expandable=cheap)
    assert advised is not None
    assert advised.candidate == SPLIT


def test_of_a_window_from_the_middle_no_more_is_promised_than_the_job_had() -> None:
    recording = Recording.from_snapshot(read_snapshot(FOLDER / "unet__default.pickle.gz"))
    window = cut(recording, len(recording.events) // 10)
    found = advise(window, anew=True)
    mine = next(each for each in found if each.candidate.is_recorded)
    assert mine.prediction.peak_reserved_bytes <= window.peak_reserved_bytes
    best = recommended(found)
    assert best is not None
    assert best.text == "expandable_segments:True"
    assert 0 < best.gain_bytes <= 860 * MIB  # what it gained on the GPU
