"""Blocks gathered by stack, line, category and size."""

from __future__ import annotations

from tests.support.made_moments import KIB, MIB, entry, memory, two_steps
from vramscope_analysis.moments.category import Category
from vramscope_analysis.moments.groups import groups_of


def test_every_block_is_in_one_group() -> None:
    made = two_steps()
    for by in ("stack", "line", "category", "size"):
        index, groups = groups_of(made, by)
        assert len(index) == len(made.lifetimes)
        assert 0 <= index.min() <= index.max() < len(groups)


def test_a_line_gathers_what_it_called() -> None:
    made = two_steps()
    index, groups = groups_of(made, "line")
    line = groups[index[0]]
    assert (line.label, line.category) == ("train.py:30 train_step", None)
    assert line.file == "/home/ada/train.py"
    stacks = groups_of(made, "stack")[1]
    assert {"train.py:30 train_step", "train.py:30 train_step › _init_group"} <= {
        group.label for group in stacks
    }


def test_sizes_have_the_borders_of_the_allocator() -> None:
    sizes = [512, MIB, MIB + 1, 10 * MIB + 512 * KIB, 2 << 30]
    made = memory([entry("alloc", i << 40, size) for i, size in enumerate(sizes)])
    index, groups = groups_of(made, "size")
    assert [groups[i].label for i in index] == [
        *("up to 1 MiB", "up to 1 MiB", "1 to 10 MiB", "10 to 100 MiB", "above 1 GiB"),
    ]
    assert {group.category for group in groups} == {None}


def test_categories_keep_their_order() -> None:
    groups = groups_of(two_steps(), "category")[1]
    assert [group.category for group in groups] == list(Category)
