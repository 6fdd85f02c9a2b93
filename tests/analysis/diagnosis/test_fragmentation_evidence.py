"""What stands behind a finding about fragmentation: pools, requests, and the words of a card."""

from __future__ import annotations

from typing import Any

from tests.support.made_layouts import made_layout
from tests.support.made_moments import recorded
from tests.support.made_ranks import GIB, MIB, made_rank, rows_of
from vramscope_analysis.diagnosis.cache_use import cache_use
from vramscope_analysis.diagnosis.fragmentation_evidence import (
    fragmentation_evidence,
    layout_of_pieces,
    request_sentence,
    rounding_bytes,
)
from vramscope_analysis.diagnosis.piece_shape import shape_of
from vramscope_analysis.evidence.memory_layout import MemoryLayout
from vramscope_analysis.evidence.recorded_requests import recorded_requests
from vramscope_analysis.evidence.recorded_window import RecordedWindow
from vramscope_analysis.evidence.run_evidence import RankEvidence

STEPS = 80
SPLIT = ("s1 f599", "s1 f299 a100", "a23")
COLUMNS = {
    "reserved_bytes.all.current": GIB,
    "step.peak_active_bytes": 600 * MIB,
    "active_bytes.all.current": 125 * MIB,
    "allocated_bytes.all.current": 125 * MIB,
    "requested_bytes.all.current": 120 * MIB,
}


def rank(**more: Any) -> RankEvidence:
    layout = made_layout(*SPLIT, step=STEPS, limit_bytes=GIB + 100 * MIB)
    samples = rows_of(1, {"cache.private_pool_bytes": 0})
    told: dict[str, Any] = {"layout": layout, "settings": "", "samples": samples}
    return made_rank(STEPS, columns=COLUMNS, **{**told, **more})


def window(name: str = "varlen__default") -> RecordedWindow:
    return RecordedWindow(MemoryLayout(()), recorded_requests(recorded(name)))


def evidence_of(one: RankEvidence) -> dict[str, Any]:
    use = cache_use(one, 60)
    layout = layout_of_pieces(one, use)
    shape = None if layout is None else shape_of(layout)
    return fragmentation_evidence(one, use, layout, shape, None, 0)


def test_internal_external_stranded_and_use_at_the_peak_are_numbers() -> None:
    evidence = evidence_of(rank())
    assert evidence["rounding_bytes"] == 5 * MIB
    assert evidence["in_pieces_bytes"] == GIB - 600 * MIB
    assert evidence["utilisation_at_peak"] == round(600 / 1024, 4)
    assert evidence["facts"] == [
        "At the peak 600 MiB of 1.0 GiB were in use; blocks are 5.0 MiB larger than asked for."
    ]


def test_each_pool_of_each_stream_is_told() -> None:
    (row,) = evidence_of(rank())["pools"]
    assert row | {"count": 2} == row
    assert (row["pool"], row["stream_name"]) == ("large", "the default stream")
    assert (row["reserved_bytes"], row["active_bytes"], row["bytes"]) == (
        1023 * MIB,
        125 * MIB,
        898 * MIB,
    )
    assert (row["largest_bytes"], row["pinned_bytes"]) == (599 * MIB, 599 * MIB)


def test_the_largest_that_can_be_had_stands_against_what_is_asked_for() -> None:
    assert request_sentence(rank()) == "Without a flush 599 MiB can be had now in one piece."
    told = evidence_of(rank(window=window()))
    assert told["largest_satisfiable_bytes"] == 599 * MIB
    assert (told["largest_request_bytes"], told["steps_beyond"]) == (169_728_000, 0)
    assert request_sentence(rank(window=window())) == (
        "Each of 39 recorded steps asks for 24.9 MiB to 162 MiB in one piece. "
        "Without a flush 599 MiB can be had now."
    )
    carved = made_layout("s1 f99 s1 f899", limit_bytes=1001 * MIB)
    tight = made_layout("s1 f99 s1 f59 s800", limit_bytes=GIB)
    assert request_sentence(rank(window=window(), layout=carved)).endswith(
        "899 MiB can be had now."
    )
    assert request_sentence(rank(window=window(), layout=tight)) == (
        "Each of 39 recorded steps asks for 24.9 MiB to 162 MiB in one piece. "
        "Without a flush 99.0 MiB can be had now: 24 of 39 asked for more."
    )


def test_without_a_map_or_a_window_less_is_said_and_nothing_invented() -> None:
    assert request_sentence(rank(layout=None)) == ""
    assert request_sentence(rank(layout=None, window=window("fixed__default"))) == (
        "Each of 19 recorded steps asks for 125 MiB in one piece."
    )
    assert request_sentence(rank(layout=None, window=window("pools__default"))) == (
        "The largest recorded request is 23.9 MiB."
    )
    told = evidence_of(rank(layout=None))
    assert (told["pools"], told["shape"], told["largest_satisfiable_bytes"]) == ([], "", None)
    assert "largest_request_bytes" not in told
    assert rounding_bytes(made_rank(3, columns={})) is None


def test_a_recorded_moment_counts_more_than_the_map_unless_it_is_of_another_time() -> None:
    requests = recorded_requests(recorded("fixed__default"))
    peak = made_layout("a124 f900")
    then = made_layout("a100 f100")
    use = cache_use(rank(), 60)
    assert use is not None
    for kept, expected in ((peak, peak), (then, rank().layout)):
        found = layout_of_pieces(rank(window=RecordedWindow(kept, requests)), use)
        assert found is not None
        assert expected is not None
        assert found.pools == expected.pools
    assert layout_of_pieces(rank(layout=then), use) is None
    assert layout_of_pieces(rank(), None) is None
