"""What a recording shows of pieces: how much, where they lie, and settings with proof."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.allocator_traces import load_trace
from tests.support.made_moments import LOOP_STACK, MIB, block, entry, memory, recorded, segment
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
    assert pieces.layout.free_bytes == pieces.reserved_bytes - pieces.live_bytes


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
        ("streams__default", "stream pools", "belong to other streams than stream 0x"),
        ("streams__expandable", "stream pools", "belong to other streams than stream 0x"),
        ("cuda_graphs__default", "stream pools", "belong to other streams than the default"),
        ("unet__default", "size-mix", "cut into 48 pieces by blocks of changing sizes"),
        # 24 MiB are pinned, of 1.2 GiB: that is not what it is about.
        ("settings__default", "size-mix", "cut into 29 pieces by blocks of changing sizes"),
    ],
)
def test_where_the_pieces_lie_tells_their_kind(name: str, shape: str, words: str) -> None:
    (finding,) = snapshot_pieces(recorded(name), "", ())
    assert finding.evidence["shape"] == shape
    assert words in finding.detail
    assert sum(pool["bytes"] for pool in finding.evidence["pools"]) > 0
    advised = [remedy.action for remedy in finding.remedies]
    assert advised == ["use fewer streams for work that allocates"] * (shape == "stream pools")


def test_blocks_that_stay_in_the_segments_of_a_step_are_named() -> None:
    """A step takes 40 MiB segments; what it leaves in each keeps them from being whole again."""
    entries: list[dict[str, Any]] = []
    for at in range(4):
        begin = 40 * at * MIB
        entries += [
            entry("segment_alloc", begin, 40 * MIB),
            entry("alloc", begin, 40 * MIB),
            entry("free_requested", begin, 40 * MIB),
            entry("free_completed", begin, 40 * MIB),
            entry("alloc", begin, MIB, stack=LOOP_STACK),
        ]
    held = [
        segment(40 * at * MIB, [block(MIB, MIB, stack=LOOP_STACK), block(39 * MIB)])
        for at in range(4)
    ]
    (finding,) = snapshot_pieces(memory(entries, held), "", ())
    assert finding.summary == (
        "117 MiB of 160 MiB reserved were never needed at once: they lie beside blocks that stay."
    )
    assert finding.detail.startswith(
        "Static: 117 MiB of 157 MiB free lie in segments kept by 3 blocks that stay (3.0 MiB, "
        "such as train.py:30 train_step); the largest piece is 40.0 MiB."
    )
    assert finding.evidence["shape"] == "static"
    (pin,) = finding.evidence["pinned_by"]
    assert (pin["blocks"], pin["live_bytes"], pin["pinned_bytes"]) == (3, 3 * MIB, 117 * MIB)
    assert [remedy.action for remedy in finding.remedies] == [
        "allocate what stays before the first step"
    ]


def test_what_the_steps_asked_for_is_told() -> None:
    (finding,) = snapshot_pieces(recorded("varlen__default"), "", ())
    assert finding.detail.endswith(
        "Each of 39 recorded steps asks for 24.9 MiB to 162 MiB in one piece."
    )
    assert finding.evidence["largest_request_bytes"] == 169_728_000
    assert finding.evidence["recurring_requests"][0] | {"at": ""} == {
        "bytes": 12_288_000,
        "a_step": 6.0,
        "stream": 0,
        "at": "",
    }


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
