"""A cache that training does not use: who lifted it, what it would give back, and whom it hurts."""

from __future__ import annotations

from typing import Any

from tests.support.made_ranks import GIB, MIB, made_rank, prefixes, rows_of, stretch
from vramscope_analysis.diagnosis.oversized_cache import oversized_cache
from vramscope_analysis.evidence.columns import UNKNOWN
from vramscope_analysis.evidence.run_evidence import RankEvidence

COUNT = 180


def job(
    peaks: list[int],
    reserved: list[int],
    *,
    free_bytes: int = 40 * GIB,
    returnable: int = 70 * GIB,
    **more: Any,
) -> RankEvidence:
    samples = rows_of(
        1,
        {
            "cache.private_pool_bytes": 0,
            "cache.returnable_bytes": returnable,
            "device.free_bytes": free_bytes,
        },
    )
    columns: dict[str, Any] = {
        "reserved_bytes.all.current": reserved,
        "step.peak_active_bytes": peaks,
    }
    return made_rank(len(peaks), columns=columns, samples=samples, **more)


def saving(at: int = 100, **more: Any) -> RankEvidence:
    """Training needs 10 GiB; a save at one step needs 30, which stay reserved."""
    peaks = [10 * GIB] * at + [30 * GIB] + [10 * GIB] * (COUNT - at - 1)
    reserved = [11 * GIB] * at + [31 * GIB] * (COUNT - at)
    return job(peaks, reserved, **more)


def test_the_first_save_lifts_reserved_memory_and_is_named() -> None:
    (finding,) = oversized_cache(saving(stretches=[stretch("checkpoint", 100)]))
    assert finding.summary == (
        "The checkpoint at step 101 lifted reserved memory: 21.0 GiB are not used since."
    )
    assert (finding.kind, finding.severity, finding.subject) == (
        "oversized_cache",
        "info",
        "checkpoint",
    )
    assert finding.remedies[0].command == "empty_cache"
    assert finding.remedies[0].predicted_bytes == 21 * GIB
    assert finding.since_step == 101
    assert "leak" not in str(finding)


def test_a_high_step_without_a_known_phase_is_told_once_it_is_long_ago() -> None:
    found = [bool(oversized_cache(each)) for each in prefixes(saving())]
    assert found.index(True) == 150  # with step 151, 50 steps of training after it
    (finding,) = oversized_cache(saving())
    assert finding.summary == "The cache keeps 21.0 GiB that were last needed at step 101."


def test_of_a_high_stretch_the_last_step_is_told() -> None:
    peaks = [10 * GIB] * 60 + [30 * GIB] * 60 + [10 * GIB] * 60
    (finding,) = oversized_cache(job(peaks, [31 * GIB] * COUNT))
    assert finding.summary.endswith("were last needed at step 120.")
    assert finding.since_step == 120


def test_a_cache_that_is_used_is_none() -> None:
    flat = job([10 * GIB] * COUNT, [11 * GIB] * COUNT)
    assert [oversized_cache(each) for each in prefixes(flat, 9)] == [[]] * 20
    # Long batches come again and again.
    varying = [10 * GIB, 12 * GIB, 30 * GIB, 11 * GIB] * (COUNT // 4)
    assert oversized_cache(job(varying, [32 * GIB] * COUNT)) == []
    # What was never needed at once lies in pieces.
    assert oversized_cache(job([10 * GIB] * COUNT, [31 * GIB] * COUNT)) == []


def test_a_little_more_than_needed_is_not_worth_a_word() -> None:
    peaks = [10 * GIB] * 100 + [12 * GIB] + [10 * GIB] * 79
    assert oversized_cache(job(peaks, [13 * GIB] * COUNT)) == []
    small = [100 * MIB] * 100 + [200 * MIB] + [100 * MIB] * 79
    assert oversized_cache(job(small, [220 * MIB] * COUNT)) == []


def test_with_the_device_full_it_is_in_the_way_of_others() -> None:
    (finding,) = oversized_cache(saving(free_bytes=GIB))
    assert finding.severity == "warning"
    assert finding.summary == (
        "The cache keeps 21.0 GiB that training does not use; 1.0 GiB of the device are left for "
        "others."
    )
    assert "fragmentation" not in str(finding)


def test_no_more_is_promised_than_can_be_given_back() -> None:
    (finding,) = oversized_cache(saving(returnable=9 * GIB))
    assert finding.remedies[0].predicted_bytes == 9 * GIB
    assert oversized_cache(saving(returnable=0)) == []


def test_an_evaluation_has_a_remedy_of_its_own() -> None:
    (finding,) = oversized_cache(saving(stretches=[stretch("eval", 100)]))
    assert [remedy.action for remedy in finding.remedies] == [
        "empty the cache once, after the evaluation",
        "evaluate in smaller batches",
    ]


def test_unknown_numbers_say_nothing() -> None:
    assert oversized_cache(saving(total_bytes=None)) == []
    unknown = saving(free_bytes=UNKNOWN)
    assert [finding.severity for finding in oversized_cache(unknown)] == ["info"]
