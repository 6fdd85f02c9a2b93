"""How much was missing follows from the request, the limits and what the allocator held."""

from __future__ import annotations

from dataclasses import replace

from tests.analysis.diagnosis.test_oom_message import TEXT
from tests.support.made_ooms import GIB, MIB, made_oom
from vramscope_analysis.diagnosis.oom_shortage import Shortage
from vramscope_analysis.evidence.oom_report import OomReport


def test_the_device_left_less_than_was_asked_for() -> None:
    shortage = Shortage.of(made_oom(allocated_mib=900, request_mib=200))
    assert (shortage.room_bytes, shortage.missing_bytes) == (124 * MIB, 76 * MIB)
    assert shortage.needed_bytes == 1100 * MIB
    assert (shortage.limit_is_own, shortage.is_at_own_limit) == (False, False)
    assert not shortage.fits_in_pieces


def test_a_cap_below_the_device_is_told_from_a_full_device() -> None:
    capped = Shortage.of(made_oom(allocated_mib=900, total_mib=4096))
    assert (capped.is_at_own_limit, capped.withheld_bytes) == (True, (4096 - 1024) * MIB)
    full = Shortage.of(made_oom(allocated_mib=900, total_mib=4096, free_mib=50))
    assert (full.limit_is_own, full.is_at_own_limit) == (True, False)
    assert full.room_bytes == 50 * MIB


def test_pieces_are_enough_together_and_none_is() -> None:
    shortage = Shortage.of(made_oom(allocated_mib=700, pieces_mib=250, request_mib=200))
    assert shortage.fits_in_pieces
    assert shortage.largest_left_bytes == 74 * MIB  # the room; the largest piece has 25
    too_few = Shortage.of(made_oom(allocated_mib=900, pieces_mib=50, request_mib=200))
    assert not too_few.fits_in_pieces


def test_a_small_request_is_held_against_the_small_pool() -> None:
    small = {"pool": "small", "stream": 0, "bytes": 5, "largest_bytes": 5}
    report = made_oom(allocated_mib=700, pieces_mib=300, request_mib=0.5)
    shortage = Shortage.of(replace(report, free_blocks=(small,)))
    assert shortage.pieces_bytes == 5


def test_free_memory_of_private_pools_is_nobody_elses() -> None:
    private = {"pool": "large (1, 0)", "stream": 0, "bytes": GIB, "largest_bytes": GIB}
    shortage = Shortage.of(OomReport(request_bytes=5 * MIB, free_blocks=(private,)))
    assert shortage.pieces_bytes == 0


def test_pytorchs_own_words_tell_what_nothing_else_does() -> None:
    shortage = Shortage.of(OomReport(source="exception", message=TEXT))
    assert shortage.request_bytes == shortage.segment_bytes == 198 * MIB
    assert shortage.allowed_bytes == 3 * GIB
    assert shortage.is_at_own_limit
    assert shortage.pieces_bytes is not None
    assert shortage.pieces_bytes // MIB == 413
    assert shortage.largest_bytes is None


def test_others_are_unknown_where_nobody_is_seen() -> None:
    assert Shortage.of(made_oom()).other_bytes is None
    seen = ({"pid": 1, "bytes": 5, "own": True}, {"pid": 2, "bytes": 7, "own": False})
    assert Shortage.of(made_oom(processes=seen)).other_bytes == 7


def test_of_an_empty_report_nothing_is_known() -> None:
    shortage = Shortage.of(OomReport())
    assert (shortage.missing_bytes, shortage.room_bytes, shortage.needed_bytes) == (None,) * 3
    assert not shortage.fits_in_pieces
