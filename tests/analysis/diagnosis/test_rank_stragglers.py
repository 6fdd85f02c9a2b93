"""A rank whose cache is larger, or flushed more often, than those of ranks that need as much."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_ranks import GIB, MIB, made_rank
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.rank_account import RankAccount, rank_account
from vramscope_analysis.diagnosis.rank_stragglers import more_cache, more_flushes
from vramscope_analysis.diagnosis.words import MAX_SENTENCE

STEPS = 80
TOTAL = 80 * GIB


def account(number: int, needed: int = 40 * GIB, cache: int = 2 * GIB, **more: Any) -> RankAccount:
    columns: dict[str, Any] = {
        "step.peak_active_bytes": needed,
        "step.peak_reserved_bytes": needed + cache,
        "inactive_split_bytes.all.current": 256 * MIB,
        "num_alloc_retries": 0,
    }
    found = rank_account(made_rank(STEPS, rank=number, columns=columns | more))
    assert found is not None
    return found


def flushing(number: int, every: int, **more: Any) -> RankAccount:
    return account(number, num_alloc_retries=[step // every for step in range(STEPS)], **more)


def cached(accounts: list[RankAccount]) -> list[Finding]:
    return more_cache(accounts, len(accounts), TOTAL)


def flushed(accounts: list[RankAccount]) -> list[Finding]:
    return more_flushes(accounts, len(accounts))


def alike(count: int = 8) -> list[RankAccount]:
    return [account(n, 40 * GIB + n % 4 * 256 * MIB, 2 * GIB + n % 3 * GIB) for n in range(count)]


def test_a_rank_that_keeps_whole_segments_is_named_with_what_it_can_give_back() -> None:
    ranks = alike()
    ranks[5] = account(5, cache=20 * GIB)
    (finding,) = cached(ranks)
    assert finding.summary == (
        "Rank 5 of 8 holds 17.0 GiB more in its cache; its tensors need no more than the others'."
    )
    assert len(finding.summary) <= MAX_SENTENCE
    assert (finding.kind, finding.subject, finding.ranks) == ("rank_imbalance", "cache", (5,))
    assert finding.severity == "info"
    assert "whole segments" in finding.detail
    (remedy,) = finding.remedies
    assert (remedy.command, remedy.predicted_bytes) == ("empty_cache", 17 * GIB)
    assert remedy.cost


def test_a_rank_whose_memory_is_in_pieces_is_not_told_to_empty_its_cache() -> None:
    ranks = alike()
    pieces = {"inactive_split_bytes.all.current": 15 * GIB}
    ranks[5] = account(5, cache=20 * GIB, **pieces)
    (finding,) = cached(ranks)
    assert "in pieces" in finding.detail
    assert [remedy.command for remedy in finding.remedies] == ["history_start"]


def test_where_pieces_are_not_known_no_remedy_is_offered() -> None:
    ranks = alike()
    unknown = account(5, cache=20 * GIB, **{"inactive_split_bytes.all.current": -(1 << 63)})
    ranks[5] = unknown
    (finding,) = cached(ranks)
    assert finding.remedies == ()


def test_caches_that_differ_a_little_by_design_or_for_a_while_are_left_alone() -> None:
    assert cached(alike()) == []
    pipeline = [account(n, cache=(2 + 3 * n) * GIB) for n in range(8)]
    assert cached(pipeline) == []
    half = [account(n, cache=(20 if n % 2 else 2) * GIB) for n in range(8)]
    assert cached(half) == []
    passing = alike()
    rise: dict[str, Any] = {"step.peak_reserved_bytes": [42 * GIB] * 60 + [60 * GIB] * 20}
    passing[5] = account(5, **rise)
    assert cached(passing) == []


def test_a_rank_that_needs_more_is_another_matter() -> None:
    ranks = alike()
    ranks[5] = account(5, needed=55 * GIB, cache=20 * GIB)
    assert cached(ranks) == []


def test_two_ranks_and_ranks_that_do_not_tell() -> None:
    assert cached([account(0), account(1, cache=8 * GIB)]) == []
    assert len(cached([account(0), account(1, cache=12 * GIB)])) == 1
    silent = [account(n, **{"step.peak_reserved_bytes": -(1 << 63)}) for n in range(4)]
    assert cached(silent) == []
    assert cached([*silent, account(4, cache=20 * GIB)]) == []


def test_a_rank_that_flushes_far_more_often_than_the_others_is_named() -> None:
    ranks = [flushing(n, 25) for n in range(7)]
    ranks.append(flushing(7, 3))
    (finding,) = flushed(ranks)
    assert finding.summary == (
        "Rank 7 of 8 flushed its cache 16 times, the others 2 times or so; the others wait for it."
    )
    assert (finding.severity, finding.subject, finding.ranks) == ("warning", "flushes", (7,))
    assert "fits less well" in finding.detail


def test_it_is_told_whether_the_flushing_rank_needs_more() -> None:
    ranks = [account(n) for n in range(7)]
    (finding,) = flushed([*ranks, flushing(7, 3, needed=50 * GIB)])
    assert finding.summary == "Rank 7 of 8 flushed its cache 16 times; the others wait for it."
    assert "It needs 10.0 GiB more at its peaks." in finding.detail


def test_ranks_that_are_not_known_yet_are_counted_too() -> None:
    ranks = [account(n) for n in range(6)]
    (finding,) = more_flushes([*ranks, flushing(6, 5)], 8)
    assert finding.summary.startswith("Rank 6 of 8 ")
    (finding,) = more_cache([*ranks, account(6, cache=20 * GIB)], 8, TOTAL)
    assert finding.summary.startswith("Rank 6 of 8 ")


def test_flushes_that_are_a_few_times_as_many_are_chance() -> None:
    ranks = [flushing(n, 25) for n in range(7)]
    assert flushed([*ranks, flushing(7, 8)]) == []  # six times, the others twice


def test_two_of_eight_ranks_are_told_of_and_three_are_no_exception() -> None:
    ranks = [*alike(6), account(6, cache=20 * GIB), account(7, cache=30 * GIB)]
    assert [finding.ranks for finding in cached(ranks)] == [(7,), (6,)]
    ranks[5] = account(5, cache=25 * GIB)
    assert cached(ranks) == []


@pytest.mark.parametrize("every", [3, 8, 20])
def test_flushes_of_all_or_of_many_are_no_exception(every: int) -> None:
    assert flushed([flushing(n, every) for n in range(8)]) == []
    some = [flushing(n, every) if n < 3 else account(n) for n in range(8)]
    assert flushed(some) == []


def test_of_two_the_other_one_is_the_usual() -> None:
    assert len(flushed([account(0), flushing(1, 5)])) == 1
    assert flushed([flushing(0, 10), flushing(1, 5)]) == []
    assert flushed([account(0)]) == []
