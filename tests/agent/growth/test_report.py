"""The answer has the fields that its reader knows."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import vramscope.growth.report
from vramscope.growth.group_holders import Held
from vramscope.growth.groups import Group
from vramscope.growth.host_tensors import HostGroup
from vramscope.growth.idle_tensors import IdleGroup
from vramscope.growth.live_blocks import Source
from vramscope.growth.report import (
    garbage_report,
    group_report,
    growth_report,
    growth_words,
    host_report,
    idle_report,
    waiting_report,
)
from vramscope.growth.waiting_blocks import WaitingGroup as Waiting
from vramscope.holders.holder import HolderFound, SourceLine
from vramscope_analysis.evidence.growth_report import (
    GrowthGroup,
    GrowthReport,
    Holder,
    WaitingGroup,
)

LINE = SourceLine("train.py", 7, "main")
OWN = SourceLine(str(vramscope.growth.report.__file__), 1, "f")
WAITING = Waiting((OWN, LINE), 5, 2048, 2)
HOLDER = HolderFound("local", ["kept"], LINE, 2, True, LINE)


def group(size: int = 1000, count: int = 10) -> Group:
    return Group(0, size, count, [0, size], [0, count], [[1]])


def report(**options: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "steps": [1, 2],
        "live_bytes": [10, 20],
        "spent_ns": 4_000_000,
        "steps_watched": 4,
        "garbage": {},
        "host_groups": [],
        "held": [],
        "notes": [],
        "complete": True,
    }
    return growth_report([], **{**fields, **options})


def names(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def test_every_field_is_one_that_the_reader_knows() -> None:
    one = group_report(group(), Source((LINE,)), Held(["float32[2]"], [HOLDER]))
    assert set(report()) <= names(GrowthReport)
    assert set(one) <= names(GrowthGroup)
    assert set(one["holders"][0]) <= names(Holder)
    assert set(idle_report(IdleGroup(1, 1, [], HOLDER, "parameters"))) <= names(GrowthGroup)
    assert set(waiting_report(WAITING)) <= names(WaitingGroup)
    json.dumps([report(), one])


def test_what_waits_for_another_stream_without_lines_of_the_agent() -> None:
    (told,) = report(waiting=[WAITING])["waiting"]
    assert [frame["line"] for frame in told["stack"]] == [7]
    assert (told["bytes"], told["count"], told["stream"]) == (2048, 2, 5)


def test_lines_of_the_agent_are_left_out_of_a_stack() -> None:
    found = group_report(group(), Source((OWN, LINE, LINE)), Held())
    assert [frame["line"] for frame in found["stack"]] == [7, 7]
    assert not found["in_backward"]


def test_what_a_backward_pass_allocates() -> None:
    engine = SourceLine("torch/autograd/graph.py", 1, "_engine_run_backward")
    assert group_report(group(), Source((engine, LINE)), Held())["in_backward"]
    assert group_report(group(), Source((), 512), Held())["in_backward"]


def test_how_much_is_garbage_is_told_by_the_samples() -> None:
    circle = HolderFound("garbage", ["Cycle", "Cycle.me"], tensors=3)
    some = Held([], [circle], garbage=3, found=3, missing={1: 0})
    assert group_report(group(), Source((LINE,)), some)["garbage_bytes"] == 750
    found = garbage_report([group(), group(8, 8)], [some, some])
    assert found == {"bytes": 750 + 6, "tensors": 7 + 6, "cycle": ["Cycle", "Cycle.me"]}
    assert garbage_report([group()], [Held()]) == {}


def test_cost_is_told_by_the_step() -> None:
    assert report()["added_us_per_step"] == 1000.0
    assert report(steps_watched=0)["added_us_per_step"] == 4000.0


def test_what_grows_on_the_host() -> None:
    found = host_report(HostGroup("autograd graph", None, 12, [], HOLDER))
    assert (found["type"], found["bytes"], found["count"]) == ("autograd graph", None, 12)
    assert found["holders"][0]["chain"] == ["kept"]


def test_all_of_it_in_a_sentence() -> None:
    assert growth_words([], "4 looks in 60 steps") == "Nothing grows: 4 looks in 60 steps."
    told = growth_words([group(1 << 20), group(1 << 20)], "4 looks in 60 steps")
    assert told == "2 MiB more from 2 places: 4 looks in 60 steps."
    assert growth_words([group(1 << 20)], "over").startswith("1 MiB more from one place: ")
