"""Which module the memory of a step belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from vramscope.modules.module_account import ModuleAccount, Reading
from vramscope.modules.module_tree import ModuleEntry, ModuleTree

ROOT, FIRST, INNER, LAST = range(4)


class Rig:
    """A model of a root, a module with one inside, and one more."""

    def __init__(self) -> None:
        tree = ModuleTree()
        tree.entries = [
            ModuleEntry("Model", "Model", None, 0, 0),
            ModuleEntry("first", "Block", ROOT, 100, 0),
            ModuleEntry("first.inner", "Linear", FIRST, 1000, 8),
            ModuleEntry("last", "Linear", ROOT, 10, 0),
        ]
        self.account = ModuleAccount(tree)

    def forward(self) -> None:
        account = self.account
        account.forward_begins(ROOT, Reading(1000, 1000))
        account.forward_begins(FIRST, Reading(1000, 1000))
        account.forward_begins(INNER, Reading(1100, 1200))
        account.forward_ends(INNER, Reading(1400, 1700))
        account.forward_ends(FIRST, Reading(1450, 1500))
        account.forward_begins(LAST, Reading(1450, 1450))
        account.forward_ends(LAST, Reading(1500, 1900))
        account.forward_ends(ROOT, Reading(1500, 1500))

    def rows(self) -> dict[str, Any]:
        return {row["path"]: row for row in self.account.report()}

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.account.report()]


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_what_a_forward_leaves_behind_is_kept(rig: Rig) -> None:
    rig.forward()
    rig.account.step_ends(Reading(1000, 1500))
    assert rig.column("kept_bytes") == [500, 450, 300, 50]
    assert rig.column("calls") == [1, 1, 1, 1]


def test_a_peak_belongs_to_what_ran_and_to_all_above_it(rig: Rig) -> None:
    rig.forward()
    rig.account.step_ends(Reading(1000, 1500))
    assert rig.column("forward_peak_bytes") == [1900, 1700, 1700, 1900]
    assert rig.column("forward_extra_bytes") == [900, 700, 600, 450]


def test_bytes_of_tensors_add_up_to_the_model(rig: Rig) -> None:
    rig.forward()
    rig.account.step_ends(Reading(1000, 1500))
    assert rig.column("parameters_bytes") == [1110, 1100, 1000, 10]
    assert rig.column("buffers_bytes") == [8, 8, 8, 0]


def test_the_backward_goes_the_other_way(rig: Rig) -> None:
    rig.forward()
    # The model and its last module have the same output, and so the same node: inner one first.
    rig.account.backward_begins(LAST, Reading(1500, 1600))
    rig.account.backward_begins(ROOT, Reading(1500, 1500))
    # The highest of what follows is of the last module.
    rig.account.backward_begins(INNER, Reading(1400, 2100))
    rig.account.backward_begins(FIRST, Reading(1400, 1400))
    rig.account.step_ends(Reading(1000, 1750))
    rows = rig.rows()
    assert rows["last"]["backward_peak_bytes"] == 2100
    assert rows["last"]["backward_extra_bytes"] == 600
    assert rows["first.inner"]["backward_peak_bytes"] == 1750
    assert rows["first"]["backward_extra_bytes"] == 350
    assert rows["Model"]["backward_peak_bytes"] == 2100


def test_of_several_steps_the_most_is_told(rig: Rig) -> None:
    rig.forward()
    rig.account.step_ends(Reading(1000, 1500))
    rig.account.forward_begins(LAST, Reading(1000, 1000))
    rig.account.forward_ends(LAST, Reading(1700, 1750))
    rig.account.step_ends(Reading(1000, 1700))
    assert rig.column("kept_bytes") == [500, 450, 300, 700]
    assert rig.rows()["last"]["forward_peak_bytes"] == 1900


def test_a_module_that_runs_twice_in_a_step_keeps_twice(rig: Rig) -> None:
    for begin in (1000, 1100):
        rig.account.forward_begins(LAST, Reading(begin, begin))
        rig.account.forward_ends(LAST, Reading(begin + 100, begin + 100))
    rig.account.step_ends(Reading(1000, 1200))
    assert (rig.rows()["last"]["kept_bytes"], rig.rows()["last"]["calls"]) == (200, 2)


def test_a_module_that_raised_does_not_stay_open(rig: Rig) -> None:
    rig.account.forward_begins(ROOT, Reading(1000, 1000))
    rig.account.forward_begins(FIRST, Reading(1000, 1000))
    rig.account.forward_ends(ROOT, Reading(1000, 1200))
    rig.account.forward_begins(LAST, Reading(1000, 9000))
    rig.account.forward_ends(LAST, Reading(1000, 1000))
    assert rig.rows()["first"]["forward_peak_bytes"] == 1200


def test_what_runs_again_in_the_backward_is_told_as_such(rig: Rig) -> None:
    rig.forward()
    rig.account.backward_begins(ROOT, Reading(1500, 1500))
    rig.account.backward_begins(FIRST, Reading(1500, 1500), recomputed=True)
    rig.account.backward_goes_on_above(FIRST, Reading(1800, 2500))
    rig.account.step_ends(Reading(1000, 1900))
    rows = rig.rows()
    assert rows["first"]["recomputed"]
    assert rows["first"]["backward_peak_bytes"] == 2500
    assert rows["first"]["kept_bytes"] == 450
    assert rows["Model"]["backward_peak_bytes"] == 2500


def test_modules_without_memory_of_any_kind_are_left_out(rig: Rig) -> None:
    assert [row["path"] for row in rig.account.report()] == [
        "Model",
        "first",
        "first.inner",
        "last",
    ]
    tree = ModuleTree()
    tree.entries = [ModuleEntry("Identity", "Identity", None, 0, 0)]
    assert ModuleAccount(tree).report() == []
