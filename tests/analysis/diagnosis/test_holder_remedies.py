"""Remedies fit their holder, and say what they cost."""

from __future__ import annotations

from tests.analysis.diagnosis.test_holder_words import verdict
from tests.support.step_floors import MIB, held_by
from vramscope_analysis.diagnosis.holder_remedies import (
    cycle_remedies,
    exception_remedies,
    remedies_of,
)


def test_no_remedy_advises_item_in_each_step_without_its_cost() -> None:
    for kind in ("autograd_graph", "attribute", "local"):
        for remedy in remedies_of(verdict(held_by(kind, "total")), None):
            if ".item()" in remedy.fix or ".cpu()" in remedy.fix:
                assert "waits for the GPU" in remedy.cost


def test_collecting_is_offered_with_what_it_costs_here() -> None:
    collect = cycle_remedies(MIB, 88.4)[1]
    assert (collect.command, collect.cost) == ("gc_collect", "A full collection takes 88 ms here.")
    assert "every object" in cycle_remedies(MIB)[1].cost


def test_scalars_are_to_be_numbers_and_the_rest_reduced() -> None:
    found = verdict(held_by("attribute", "T.results", "list of 40"))
    assert remedies_of(found, MIB)[1].fix == "x.detach().cpu()"


def test_an_exception_is_let_go_of_by_its_last_names() -> None:
    assert exception_remedies(MIB)[0].predicted_bytes == MIB
    assert "sys.last_traceback" in exception_remedies(None)[0].fix
