"""What a recording shows of pieces: how much, where they lie, and settings with proof."""

from __future__ import annotations

import pytest

from tests.support.allocator_traces import load_trace
from tests.support.made_moments import MIB, block, memory, recorded, segment
from vramscope_analysis.diagnosis.snapshot_pieces import pieces_of, snapshot_pieces
from vramscope_analysis.evidence.settings_trial import SettingsTrial

RECORDED = SettingsTrial("", True, 3212 * MIB, 2146 * MIB, 0, 0, 0, False, False)
BETTER = SettingsTrial(
    "expandable_segments:True", False, 2298 * MIB, 2146 * MIB, 914 * MIB, 0, -9, False, True
)


def test_the_numbers_are_those_of_the_gpu() -> None:
    pieces = pieces_of(recorded("varlen__default"))
    counted = load_trace("varlen__default").final_stats
    assert pieces.reserved_bytes == counted["reserved_bytes.all.peak"]
    assert pieces.highest_bytes == counted["active_bytes.all.peak"]
    assert pieces.lost_bytes == pieces.reserved_bytes - pieces.highest_bytes
    assert sum(pool["bytes"] for pool in pieces.pools) == pieces.reserved_bytes - pieces.live_bytes


def test_a_proven_setting_is_in_the_sentence_and_unproven_ones_are_nowhere() -> None:
    (finding,) = snapshot_pieces(recorded("varlen__default"), "", (RECORDED, BETTER))
    assert finding.summary == (
        "1.0 GiB of 3.1 GiB reserved were never needed at once; 914 MiB can be had."
    )
    assert (finding.severity, finding.confidence) == ("info", 0.95)
    (facts,) = snapshot_pieces(recorded("varlen__default"), "", ())
    assert (
        facts.summary
        == "1.0 GiB of 3.1 GiB reserved were never needed at once: they lie in pieces."
    )
    assert "expandable" not in str(facts)


def test_where_requests_failed_it_is_a_warning() -> None:
    failed = SettingsTrial("", True, 3010 * MIB, 2598 * MIB, 0, 7, 0, True, False)
    (finding,) = snapshot_pieces(recorded("oom__default"), "", (failed, BETTER))
    assert finding.severity == "warning"


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("streams__default", "streams", "belong to other streams"),
        ("settings__default", "lasting blocks", "beside blocks that stayed"),
        ("unet__default", "sizes", "between blocks of changing sizes"),
    ],
)
def test_where_the_pieces_lie_tells_their_kind(name: str, shape: str, words: str) -> None:
    (finding,) = snapshot_pieces(recorded(name), "", ())
    assert finding.evidence["shape"] == shape
    assert words in finding.detail


@pytest.mark.parametrize("name", ["conv__default", "oom_retry__default", "varlen__expandable"])
def test_recordings_with_little_in_pieces_are_left_alone(name: str) -> None:
    assert snapshot_pieces(recorded(name), "", ()) == []


def test_memory_of_pools_of_the_jobs_own_is_theirs() -> None:
    pieces = pieces_of(recorded("pools__default"))
    assert pieces.private_bytes > 0
    assert snapshot_pieces(recorded("pools__default"), "", ()) == []


def test_one_moment_says_nothing_of_what_was_needed_before() -> None:
    only_end = memory((), [segment(0, [block(MIB, MIB), block(400 * MIB)])])
    assert snapshot_pieces(only_end, "", ()) == []
