"""An answer to the question what grows is read, whatever is in it."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from vramscope_analysis.evidence.growth_report import (
    Frame,
    GrowthGroup,
    GrowthReport,
    Holder,
    WaitingGroup,
)
from vramscope_server.findings.growth_answer import (
    MAX_ITEMS,
    MAX_TEXT,
    Answer,
    growth_answers,
    growth_report,
)

HOLDER = Holder("attribute", ("T.results", "list of 40"), Frame("t.py", 5, "run"), 3, True)
GROUP = GrowthGroup(
    (Frame("train.py", 56, "step"), Frame("train.py", 9)),
    bytes=1 << 40,
    count=12,
    bytes_at_looks=(1, 2, 3),
    counts_at_looks=(1, 2, 3),
    tensors=("float32[512]",),
    holders=(HOLDER,),
)
REPORT = GrowthReport(
    17,
    (10, 20, 30),
    (100, 200, 300),
    (GROUP,),
    ({"type": "dict", "bytes": 5, "holders": [{"kind": "local", "chain": ["a"]}]},),
    {"bytes": 3, "cycle": ["A", "B"]},
    12.5,
    notes=("It was quick.",),
    waiting=(WaitingGroup((Frame("train.py", 31, "step"),), 24 << 20, 2, 5),),
)


def told(**changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(REPORT))
    return plain | changes


def test_what_an_agent_tells_is_read_as_it_is() -> None:
    assert growth_report(told(), 17) == REPORT


def test_the_time_is_that_of_the_receipt() -> None:
    assert growth_report(told(time_ns=1 << 80), 99).time_ns == 99


@pytest.mark.parametrize(
    "odd", [None, 5, "text", [], {}, math.nan, [[[]]], {"a": 1}, True, [None, 7, {"bytes": "x"}]]
)
def test_what_is_not_as_it_should_be_is_left_out(odd: Any) -> None:
    for name in told():
        report = growth_report(told(**{name: odd}), 17)
        assert isinstance(report.groups, tuple)
        for group in report.groups:
            assert isinstance(group.bytes, int)
            assert all(isinstance(each, Frame) for each in group.stack)
    group = msgspec.to_builtins(GROUP)
    for name in group:
        (read,) = growth_report({"groups": [group | {name: odd}]}, 17).groups
        assert isinstance(read.holders, tuple)
        assert isinstance(read.count, int)
    holder = msgspec.to_builtins(HOLDER)
    for name in holder:
        (read,) = growth_report({"groups": [{"holders": [holder | {name: odd}]}]}, 17).groups
        assert isinstance(read.holders[0].kind, str)


def test_it_is_bounded() -> None:
    many = growth_report({"groups": [{}] * 5000, "notes": ["x" * 100_000] * 5000}, 1)
    assert len(many.groups) == len(many.notes) == MAX_ITEMS
    assert len(many.notes[0]) == MAX_TEXT
    huge = growth_report({"steps": [1 << 200, 1e300, -5], "garbage": {"a": 1 << 200}}, 1)
    assert huge.steps == (-5,)


def test_of_a_command_that_goes_on_only_what_says_that_more_follows() -> None:
    receipt: dict[str, Any] = {"state": "running", "result": told(), "time_ns": 17}
    command: dict[str, Any] = {"name": "explain_growth", "params": {}, "id": "c1"}
    assert list(growth_answers(command | {"receipts": {"0": receipt}})) == []
    receipt["result"] = told(holders_follow=True)
    (answer,) = growth_answers(command | {"receipts": {"0": receipt}})
    assert answer.report().holders_follow


def test_a_report_that_does_not_say_so_is_not_complete() -> None:
    assert growth_report({}, 1) == GrowthReport(1, complete=False)


def test_only_answers_to_this_question_are_read() -> None:
    done: dict[str, Any] = {"state": "done", "result": told(), "time_ns": 17}
    receipts = {"0": done, "1": done | {"state": "failed"}, "2": done | {"result": "text"}}
    command: dict[str, Any] = {"name": "explain_growth", "params": {}, "receipts": receipts}
    command["id"] = "c1"
    answer = Answer(0, ("c1", 17), 17, done["result"], False, False)
    assert list(growth_answers(command)) == [answer]
    assert answer.report() == REPORT
    of_host = growth_answers(command | {"params": {"host": True}})
    assert list(of_host) == [answer._replace(is_of_host=True)]
    within_step = growth_answers(command | {"params": {"above_bytes": 5}})
    assert list(within_step) == [answer._replace(is_within_step=True)]
    assert list(growth_answers(command | {"name": "stats"})) == []
