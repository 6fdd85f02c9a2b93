"""Thresholds are set as gc has them, and the receipt says what holds then."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from vramscope.commands.call import Call
from vramscope.commands.garbage_collector import garbage_collector_handlers
from vramscope_protocol.commands import Receipt
from vramscope_protocol.parameters import GcThresholdsParams


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    thresholds, is_on = gc.get_threshold(), gc.isenabled()
    gc.set_threshold(700, 10, 10)
    gc.enable()
    yield
    gc.set_threshold(*thresholds)
    (gc.enable if is_on else gc.disable)()


def run(**params: Any) -> Receipt:
    call = Call(GcThresholdsParams(**params))
    receipt = garbage_collector_handlers()["set_gc_thresholds"](call)
    assert isinstance(receipt, Receipt)
    return receipt


def test_thresholds_and_whether_it_runs_at_all_are_set() -> None:
    receipt = run(thresholds=[50_000, 20, 5], enabled=False)
    assert (gc.get_threshold(), gc.isenabled()) == ((50_000, 20, 5), False)
    assert receipt.before == {"enabled": True, "thresholds": [700, 10, 10]}
    assert receipt.after == {"enabled": False, "thresholds": [50_000, 20, 5]}
    assert receipt.message == (
        "Python collects no garbage by itself any more (thresholds 50000, 20, 5)."
    )


def test_what_is_not_named_stays() -> None:
    run(thresholds=[1000])
    assert gc.get_threshold()[0] == 1000
    assert gc.isenabled()
    assert run(enabled=True).message == (
        f"Python collects garbage by itself, with the thresholds "
        f"{', '.join(map(str, gc.get_threshold()))}."
    )


def test_a_first_threshold_of_0_is_named_for_what_it_is() -> None:
    assert "collects no garbage by itself" in run(thresholds=[0]).message


@pytest.mark.parametrize("params", [{}, {"thresholds": [1 << 31]}])
def test_what_cannot_be_set_is_refused(params: dict[str, Any]) -> None:
    receipt = run(**params)
    assert receipt.state == "refused"
    assert receipt.message.endswith("Nothing was changed.")
    assert gc.get_threshold() == (700, 10, 10)
