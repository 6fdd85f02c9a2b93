"""Memory in pieces: told from a certain size on, a warning when it did harm, advice with proof."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.support.allocator_traces import load_trace
from tests.support.made_layouts import made_layout
from tests.support.made_moments import recorded
from tests.support.made_ranks import GIB, MIB, made_rank, prefixes, recorded_rank, rows_of
from vramscope_analysis.diagnosis.fragmentation import fragmentation
from vramscope_analysis.diagnosis.settings_advice import trials_of
from vramscope_analysis.evidence.memory_layout import MemoryLayout
from vramscope_analysis.evidence.recorded_requests import RecordedRequests, Request
from vramscope_analysis.evidence.recorded_window import RecordedWindow
from vramscope_analysis.evidence.run_evidence import RankEvidence
from vramscope_analysis.evidence.settings_trial import SettingsTrial
from vramscope_analysis.evidence.window_layout import window_layout
from vramscope_analysis.replay import advise

COUNT = 120
POOLS = {"cache.private_pool_bytes": 0, "cache.stranded_bytes": 80 * MIB}


@cache
def trials(name: str) -> tuple[SettingsTrial, ...]:
    return trials_of(advise(load_trace(name).recording))


def going_on(name: str, total_bytes: int, private_bytes: int = 0, **more: Any) -> RankEvidence:
    """A job that was recorded on a GPU, as if its last step had gone on."""
    rank = recorded_rank(name)
    columns = {
        key: np.concatenate([column, np.repeat(column[-1:], COUNT)])
        for key, column in rank.steps.columns.items()
    }
    last = {key: int(column[-1]) for key, column in rank.steps.columns.items()}
    free = last["reserved_bytes.all.current"] - last["active_bytes.all.current"]
    cut = {"private_pool": private_bytes, "returnable": free - private_bytes, "stranded": 0}
    samples = rows_of(1, {f"cache.{name}_bytes": size for name, size in cut.items()})
    count = len(rank.steps) + COUNT
    return made_rank(count, columns=columns, total_bytes=total_bytes, samples=samples, **more)


def test_a_recorded_job_in_pieces_is_told_with_the_setting_that_really_helped() -> None:
    rank = going_on("varlen__default", 4 * GIB, settings="", trials=trials("varlen__default"))
    (finding,) = fragmentation(rank)
    assert (finding.kind, finding.severity) == ("fragmentation", "info")
    assert finding.summary == (
        "1.0 GiB of 3.1 GiB reserved were never needed at once: they lie in pieces."
    )
    assert finding.remedies[0].fix == "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    assert finding.remedies[0].predicted_bytes is not None
    assert finding.remedies[0].predicted_bytes > 800 * MIB  # 914 MiB on the GPU
    assert "max_split_size_mb:128" in str(finding.evidence["does_not_help"])


def test_without_a_recorded_window_there_are_facts_and_no_settings() -> None:
    (finding,) = fragmentation(going_on("varlen__default", 4 * GIB, settings=""))
    assert [remedy.command for remedy in finding.remedies] == ["history_start"]
    assert "expandable" not in str(finding)
    assert finding.evidence["utilisation_at_peak"] == 0.6684  # 2,147 of 3,212 MiB


def test_with_the_setting_on_already_the_same_job_is_no_finding() -> None:
    rank = going_on(
        "varlen__expandable",
        4 * GIB,
        settings="expandable_segments:True",
        trials=trials("varlen__expandable"),
    )
    assert fragmentation(rank) == []


@pytest.mark.parametrize(
    "name", ["fixed__default", "conv__default", "leak__default", "hf__expandable"]
)
def test_recorded_jobs_with_little_in_pieces_are_left_alone(name: str) -> None:
    for rank in prefixes(going_on(name, 4 * GIB), 29):
        assert fragmentation(rank) == []


def test_a_recorded_job_whose_requests_found_no_place_is_a_warning_before_it_ran_out() -> None:
    # It ended asking for 198 MiB with 587 MiB free, the largest piece 166 MiB.
    (finding,) = fragmentation(prefixes(going_on("oom__default", 3 * GIB))[90])
    assert (finding.severity, finding.evidence["needless_flushes"]) == ("warning", 7)
    assert finding.summary.startswith("328 MiB of 2.9 GiB reserved lie in pieces; the cache")


def test_what_is_little_of_the_device_is_left_alone() -> None:
    assert fragmentation(going_on("varlen__default", 80 * GIB)) == []


def test_memory_that_graphs_keep_is_not_in_pieces() -> None:
    assert fragmentation(going_on("cuda_graphs__default", GIB, 200 * MIB)) == []
    # Before a look at the segments nobody knows.
    rank = going_on("varlen__default", 4 * GIB)
    unknown = made_rank(len(rank.steps), columns=rank.steps.columns, total_bytes=4 * GIB)
    assert fragmentation(unknown) == []


def job(flushes: list[int], needed: int) -> RankEvidence:
    columns: dict[str, Any] = {
        "reserved_bytes.all.current": 76 * GIB,
        "step.peak_active_bytes": needed,
        "num_alloc_retries": list(np.cumsum(flushes)),
    }
    return made_rank(COUNT, columns=columns, samples=rows_of(1, POOLS))


def test_flushes_that_memory_would_have_been_enough_for_make_it_a_warning() -> None:
    at = [0] * 60 + [0, 0, 0, 1] * 15
    (finding,) = fragmentation(job(at, 62 * GIB))
    assert finding.severity == "warning"
    assert finding.summary == (
        "14.0 GiB of 76.0 GiB reserved lie in pieces; "
        "the cache was flushed 15 times for one that fits."
    )
    assert fragmentation(job([0] * COUNT, 62 * GIB)) == []  # 18 %: nobody suffers
    # Here the steps need what there is: it is too little, not in pieces.
    assert fragmentation(job(at, 75 * GIB)) == []
    # A flush of the first steps is none of the job's.
    assert fragmentation(job([1] * 10 + [0] * 110, 62 * GIB)) == []


SIZES = "s60 f140 a100 f300 a200"
PINNED = "s1 f399"


def in_pieces(layout: MemoryLayout, **more: Any) -> RankEvidence:
    """1.0 GiB of 2.0 are reserved, and at most 600 MiB were ever needed."""
    columns: dict[str, Any] = {
        "reserved_bytes.all.current": layout.reserved_bytes,
        "step.peak_active_bytes": 600 * MIB,
        "num_alloc_retries": 0,
    }
    told: dict[str, Any] = {"settings": "", "samples": rows_of(1, POOLS), "layout": layout}
    return made_rank(COUNT, columns=columns, total_bytes=2 * GIB, **{**told, **more})


@pytest.mark.parametrize(
    ("layout", "shape", "short"),
    [
        (made_layout(SIZES, "f200"), "size-mix", "they lie in pieces"),
        (
            made_layout("a400", PINNED, "s2 f198"),
            "static",
            "they lie beside blocks that stay",
        ),
        (
            made_layout(("large", 0, "a400 f100"), ("large", 96, "f500")),
            "stream pools",
            "other streams keep them",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_map_tells_what_kind_it_is(layout: MemoryLayout, shape: str, short: str) -> None:
    (finding,) = fragmentation(in_pieces(layout))
    assert finding.severity == "info"
    assert finding.summary.endswith(f"reserved were never needed at once: {short}.")
    assert finding.evidence["shape"] == shape
    assert finding.detail.startswith("Tensors never took more than 600 MiB at once, at step 1.")
    assert finding.evidence["pools"][0]["bytes"] > 0
    # The same without a look at the map: less is said.
    (blind,) = fragmentation(replace(in_pieces(layout), layout=None))
    assert (blind.evidence["shape"], blind.evidence["pools"]) == ("", [])


def test_what_the_next_step_cannot_have_in_one_piece_is_the_headline() -> None:
    asked = Request(198 * MIB, 0, "train.py:56 forward")
    requests = RecordedRequests(90, 3, asked, asked, (asked.bytes,) * 3)
    # As it was on the GPU before it ran out: 587 MiB free, of which 166 in one piece.
    carved = ("s200 f166 s200 f166 s200", "s300 f160", "s500 f95 s200")
    layout = made_layout(*carved, step=COUNT, is_step_end=True, limit_bytes=2190 * MIB)
    assert layout.reserved_bytes == 2187 * MIB
    rank = in_pieces(layout, window=RecordedWindow(layout, requests))
    columns = {**rank.steps.columns, "num_alloc_retries": np.arange(COUNT)}
    rank = made_rank(COUNT, columns=columns, settings="", layout=layout, window=rank.window)
    (finding,) = fragmentation(rank)
    assert finding.summary == (
        "The next step needs 198 MiB in one piece; the largest piece is 166 MiB, of 590 MiB free."
    )
    assert finding.severity == "warning"
    assert finding.detail.startswith("Not even a flush of the cache makes room for it.")
    assert finding.evidence["facts"][0] == (
        "Each of 3 recorded steps asks for 198 MiB in one piece, at train.py:56 forward. "
        "Without a flush 166 MiB can be had now: 3 of 3 asked for more."
    )
    # The same job a step later: it did find a place.
    later = {**columns, "num_alloc_retries": np.minimum(columns["num_alloc_retries"], COUNT - 5)}
    assert fragmentation(replace(rank, steps=rows_of(COUNT, later))) == []


def test_when_no_setting_helps_recording_again_is_not_advised() -> None:
    tried = tuple(replace(each, is_worth_it=False) for each in trials("varlen__default"))
    told = going_on("varlen__default", 4 * GIB, settings="", trials=tried)
    pinned = made_layout("a400", PINNED, "s2 f198")
    (finding,) = fragmentation(in_pieces(pinned, trials=tried))
    assert [remedy.action for remedy in finding.remedies] == [
        "allocate what stays before the first step"
    ]
    (finding,) = fragmentation(told)
    assert finding.evidence["replayed"][0]["peak_reserved_bytes"] > 0


def test_steps_that_differ_are_told_by_how_many_of_them_need_more_than_there_is() -> None:
    """A recorded job with sequences of any length, in the moment before it ran out of memory."""
    memory = recorded("oom__default")
    window = RecordedWindow.of(memory)
    rank = prefixes(going_on("oom__default", 3 * GIB, settings="", window=window))[90]
    last = window_layout(memory, memory.out_of_memory[0][0] - 1)
    told = replace(last, limit_bytes=last.reserved_bytes, step=91)
    (finding,) = fragmentation(replace(rank, layout=told))
    assert finding.severity == "warning"
    assert finding.summary == (
        "7 of 30 recorded steps asked for more in one piece than the largest, 154 MiB, "
        "of 408 MiB free."
    )
    assert finding.detail.startswith("The cache was flushed 7 times for a step that fits.")
    # All pieces together would not be enough: that is another matter.
    little = replace(
        told, pools=tuple(replace(p, free_bytes=1, largest_bytes=1) for p in told.pools)
    )
    assert "lie in pieces; the cache" in fragmentation(replace(rank, layout=little))[0].summary
