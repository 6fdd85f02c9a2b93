"""The line behind host memory, from whatever form the agent's answer has."""

from __future__ import annotations

from typing import Any

import pytest

from vramscope_analysis.diagnosis.host_culprit import HostCulprit, explained
from vramscope_analysis.evidence.growth_report import Frame, GrowthGroup, GrowthReport, Holder
from vramscope_analysis.evidence.run_evidence import RankEvidence

FRAME = {"file": "/job/train.py", "line": 12, "function": "log"}
GROUP: dict[str, Any] = {
    "type": "Tensor",
    "bytes": 300,
    "tensors": ["float32[1] cpu"],
    "holders": [{"kind": "attribute", "chain": ["Log.rows", "list of 40"], "frame": FRAME}],
}


def found(*groups: Any, **more: Any) -> HostCulprit | None:
    return explained(RankEvidence(0, growth=GrowthReport(host_groups=tuple(groups), **more)))


def of(*groups: Any, **more: Any) -> Any:
    told = found(*groups, **more)
    return None if told is None else told.culprit


def test_a_group_of_host_memory_with_its_holder() -> None:
    culprit = of(GROUP)
    assert (culprit.file, culprit.line, culprit.function) == ("/job/train.py", 12, "log")
    assert culprit.held_by == ("Log.rows", "list of 40")
    assert (culprit.bytes, culprit.tensors) == (300, ("float32[1] cpu",))


def test_a_growing_graph_on_the_device_keeps_its_nodes_on_the_host() -> None:
    def graph(is_growing: bool | None, kind: str = "autograd_graph") -> GrowthGroup:
        holder = Holder(kind, ("total", "grad_fn"), None, 3, is_growing)
        return GrowthGroup((Frame("train.py", 30, "main"),), bytes=1536, holders=(holder,))

    assert of(groups=(graph(True),)).line == 30
    assert of(groups=(graph(None),)) is None
    assert of(groups=(graph(True, "local"),)) is None


@pytest.mark.parametrize(
    "group",
    [{}, {"holders": None}, {"holders": [None]}, {"holders": [{"frame": None}]}, {"holders": "x"}],
)
def test_what_names_no_line_explains_nothing(group: Any) -> None:
    assert of(group) is None
    assert of(group, GROUP).line == 12


def test_odd_values_are_left_out() -> None:
    odd = {**GROUP, "bytes": "much", "tensors": 5, "holders": [{"frame": {"line": "12"}}]}
    culprit = of(odd)
    assert (culprit.line, culprit.bytes, culprit.tensors, culprit.held_by) == (0, None, (), ())
    assert explained(RankEvidence(0)) is None


def test_the_line_that_stores_it_goes_before_the_one_where_its_holder_lives() -> None:
    stored = {"file": "/job/train.py", "line": 40, "function": "main"}
    holder = {**GROUP["holders"][0], "stored_at": stored, "is_growing": True}
    assert of({**GROUP, "holders": [holder]}).line == 40
    assert of({**GROUP, "holders": [{**holder, "is_growing": False}]}) is None


def test_a_graph_is_the_larger_part_of_tensors_that_are_kept_with_it() -> None:
    graph: dict[str, Any] = {**GROUP, "type": "autograd graph", "bytes": None, "tensors": []}
    both = found(GROUP, graph)
    assert both is not None
    assert (both.is_graph, both.culprit.bytes) == (True, None)
    alone = found(GROUP)
    assert alone is not None
    assert not alone.is_graph
