"""Exceptions that keep memory are named, whether they gather or there is one."""

from __future__ import annotations

from dataclasses import replace

from tests.analysis.diagnosis.test_held_memory import held, risen
from tests.support.step_floors import GIB, MIB, group_of, held_by, leaking, report_of
from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.diagnosis.retained_exception import retained_exception
from vramscope_analysis.diagnosis.retention import retention

HOLDER = held_by("exception", "sys.last_traceback", "frame cell", "x")


def test_one_that_is_kept_is_named_with_what_it_holds() -> None:
    rank = risen(held(190 * MIB, HOLDER))
    (finding,) = retained_exception(rank)
    assert finding.summary == (
        "An exception has kept 190 MiB since step 121, held by sys.last_traceback."
    )
    assert (finding.severity, finding.stage) == ("warning", "confirmed")
    assert "sys.last_traceback = " in finding.remedies[0].fix
    assert finding.remedies[0].predicted_bytes == 190 * MIB
    assert retention(rank) == []


def test_more_and_more_of_them_are_growth_of_their_kind() -> None:
    rank = replace(leaking(MIB), growth=report_of(group_of(HOLDER)))
    (finding,) = retained_exception(rank)
    assert finding.summary == (
        "Exceptions keep 1.0 MiB per step at train.py:56 alive, held by sys.last_traceback."
    )
    assert leak(rank) == []
    assert retained_exception(replace(rank, total_bytes=2 * GIB))[0].severity == "critical"


def test_other_growth_is_none_of_it() -> None:
    assert retained_exception(leaking(MIB)) == []
