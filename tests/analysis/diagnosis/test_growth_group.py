"""A group grows if it does so from look to look; its lines and its holder are those of the user."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.step_floors import group_of, held_by, report_of
from vramscope_analysis.diagnosis.growth_group import (
    chain_of,
    counts_rise,
    grows,
    growth_bytes,
    is_nameless,
    lines_of,
    main_holder,
    user_line,
)
from vramscope_analysis.diagnosis.growth_verdict import verdict_of
from vramscope_analysis.evidence.growth_report import Frame, GrowthGroup

LIST = held_by("attribute", "T.results", "['acc']", "list of 40")


@pytest.mark.parametrize(
    "group",
    [
        group_of(LIST, looks=2),
        replace(group_of(LIST), bytes_at_looks=(4, 4, 4, 9)),
        replace(group_of(LIST), bytes_at_looks=(4, 9, 3, 10)),
        replace(group_of(LIST), counts_at_looks=(9, 7, 5, 3)),
        GrowthGroup(),
    ],
)
def test_what_did_not_grow_steadily_is_no_growth(group: GrowthGroup) -> None:
    assert not grows(group)
    assert verdict_of(report_of(group, live=[1, 2, 3, 4])) is None


def test_growth_in_some_looks_is_enough_if_it_never_falls_back() -> None:
    assert grows(replace(group_of(LIST), bytes_at_looks=(4, 8, 8, 12)))
    assert growth_bytes(replace(group_of(LIST), bytes_at_looks=(4, 8, 8, 12))) == 8


def test_without_a_user_frame_the_librarys_line_is_told() -> None:
    library = Frame("/env/site-packages/trainer/loop.py", 5, "fit")
    torch = Frame("/env/site-packages/torch/optim/adam.py", 9, "_init_group")
    assert user_line((torch, library)) == library
    assert user_line((torch,)) == torch
    assert user_line(()) is None


def test_lines_are_the_one_that_stores_and_the_one_that_allocates() -> None:
    stored = Frame("/job/metric.py", 7, "update")
    group = group_of(held_by("attribute", "Metric.preds", stored_at=stored))
    assert [frame.line for frame in lines_of(group)] == [7, 56]
    assert [frame.line for frame in lines_of(group_of(LIST))] == [56]
    assert lines_of(GrowthGroup()) == []


def test_a_holder_with_a_name_counts_more_than_one_without() -> None:
    nobody = held_by("cpp", tensors=9)
    assert main_holder(group_of(nobody, LIST)) == LIST
    assert main_holder(GrowthGroup()) is None
    assert is_nameless(group_of(nobody, LIST))
    assert not is_nameless(group_of(LIST))


def test_a_cache_is_called_one() -> None:
    assert chain_of(held_by("lru_cache", "Net.grid", "[0]")) == ("lru_cache of Net.grid", "[0]")
    assert chain_of(LIST) == LIST.chain


def test_counts_rise_with_blocks() -> None:
    assert counts_rise(group_of(LIST)) == 12
    assert counts_rise(GrowthGroup()) == 0


@pytest.mark.parametrize(
    ("chain", "count", "told"),
    [
        (("K.best", "[1]", "[1]", "OrderedDict of 4"), 8, ("K.best", "list")),
        (("K.best", "[1]", "[1]", "OrderedDict of 4"), 4, None),
        (("T.buffers", "[0]", "list of 90"), 12, None),
        (("kept", "list of 9", "[0]"), 12, None),
        (("T.results", "['acc']", "list of 4"), 8, None),
        (("opts", "[3]", ".state"), 8, None),
    ],
)
def test_a_member_that_is_too_small_for_all_is_one_of_many(
    chain: tuple[str, ...], count: int, told: tuple[str, ...] | None
) -> None:
    assert chain_of(held_by("attribute", *chain), count) == (told or chain)
