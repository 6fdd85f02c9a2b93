from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import nested_stats
from tests.support.made_segments import MIB, segment
from vramscope.batching.sizes import NewSizes
from vramscope.holders.others_wait import HOLD_S
from vramscope.oom import report as report_module
from vramscope.oom.moment import Moment
from vramscope.oom.report import FORMAT, Report, ReportMaker, Sources, encoded
from vramscope_analysis.evidence.oom_reading import read_oom_report

Make = Callable[..., Sources]


def moment(**changes: Any) -> Moment:
    values: dict[str, Any] = {"segment_bytes": 20, "allowed_bytes": 900, "device_free_bytes": 3}
    return Moment(12, "observer", **(values | changes))


def whole(maker: ReportMaker, of: Moment, seconds: float = 30.0) -> Report:
    made = maker.begin(of)
    maker.complete(made, of, time.perf_counter() + seconds)
    return made


def test_what_is_known_at_once_is_enough_for_a_verdict(sources: Make, device: FakeDevice) -> None:
    device.stats = nested_stats(allocated_bytes=700, num_ooms=1)
    made = ReportMaker(sources()).begin(moment())
    assert (made["format"], made["complete"], made["detail"]) == (FORMAT, False, "light")
    assert (made["step"], made["phase"]) == (7, "eval")
    assert made["counters"]["num_ooms"] == 1
    assert made["threads"][0]["raised"]
    assert made["thread"] == threading.current_thread().name
    read = read_oom_report(encoded(made))
    assert (read.segment_bytes, read.allowed_bytes, read.device_free_bytes) == (20, 900, 3)
    assert not read.complete


def test_that_the_batch_size_has_just_been_changed_is_part_of_it(sources: Make) -> None:
    sizes = NewSizes(6, {"batch_size": 8}, {"batch_size": 16})
    read = read_oom_report(encoded(ReportMaker(sources(new_sizes=lambda: sizes)).begin(moment())))
    assert read.new_sizes == {"before": {"batch_size": 8}, "after": {"batch_size": 16}}
    assert read_oom_report(encoded(ReportMaker(sources()).begin(moment()))).new_sizes == {}


@pytest.mark.parametrize("is_enabled", [True, False, None])
def test_whether_a_graph_was_recorded_where_pytorch_can_say_it(
    sources: Make, monkeypatch: pytest.MonkeyPatch, is_enabled: bool | None
) -> None:
    torch = None if is_enabled is None else SimpleNamespace(is_grad_enabled=lambda: is_enabled)
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert ReportMaker(sources()).begin(moment())["grad_enabled"] is is_enabled


def test_a_whole_one_is_read_back_by_the_judge(sources: Make, device: FakeDevice) -> None:
    device.segment_list = [segment(0, "a2 f8 a1")]
    made = whole(ReportMaker(sources()), moment())
    assert (made["complete"], made["detail"], made["notes"]) == (True, "full", [])
    read = read_oom_report(encoded(made))
    assert read.free_blocks[0]["largest_bytes"] == 8 * MIB
    assert [row["count"] for row in read.by_size] == [1, 1]
    assert [row["own"] for row in read.processes] == [True, False]
    assert read.outside[0]["name"] == "CUDA context"
    assert read.settings == "expandable_segments:True"
    assert read.device_total_bytes == 1000


def test_what_the_driver_does_not_say_is_the_limit_that_is_known(sources: Make) -> None:
    asked = Moment(12, "asked", thread_number=None, linked_to="r0")
    made = ReportMaker(sources()).begin(asked)
    assert (made["segment_bytes"], made["allowed_bytes"]) == (None, 1000)
    assert (made["thread"], made["part"], made["linked_to"]) == ("", "", "r0")
    assert not any(thread["raised"] for thread in made["threads"])


@pytest.mark.expects_guarded_errors
def test_a_part_that_fails_is_named_and_costs_no_other(sources: Make) -> None:
    def fail() -> Any:
        raise OSError("no")

    made = whole(ReportMaker(sources(settings=fail, processes=fail)), moment())
    assert made["notes"] == ["settings missing: OSError", "processes missing: OSError"]
    assert made["complete"]
    assert made["by_size"] == []
    assert "settings" not in json.loads(encoded(made))


def test_why_there_are_no_segments_is_noted(sources: Make, device: FakeDevice) -> None:
    device.no_segments_because = "another backend"
    assert whole(ReportMaker(sources()), moment())["notes"] == ["no segments: another backend"]


@pytest.mark.torch
def test_before_the_first_step_has_ended_categories_are_counted_anew(sources: Make) -> None:
    torch = pytest.importorskip("torch")
    from vramscope.tensors.census import Census

    module = torch.nn.Linear(16, 16, bias=False)

    def count_now(storage: Any) -> Census:
        census = Census(storage, names=True)
        census.count([module], [])
        return census

    tensors = SimpleNamespace(latest=dict, count_now=count_now)
    made = whole(ReportMaker(sources(tensors=lambda: tensors)), moment())
    assert made["by_category"]["category.parameters_bytes"] == 1024
    assert "no step had ended" in made["notes"][0]
    known = {"category.parameters_bytes": 5, "category.gradients_bytes": 6}
    tensors = SimpleNamespace(latest=lambda: known, count_now=count_now)
    made = whole(ReportMaker(sources(tensors=lambda: tensors)), moment())
    assert made["by_category"] == known


def test_one_that_would_be_too_large_loses_its_largest_parts(
    sources: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = whole(ReportMaker(sources()), moment())
    made["by_stack"] = ["x" * 1000]
    made["samples"] = {"time_ns": list(range(1000))}
    size = len(encoded(made))
    monkeypatch.setattr(report_module, "MAX_OOM_BYTES", size - 500)
    found = json.loads(encoded(made))
    assert "by_stack" not in found
    assert "samples" in found
    assert "by_stack left out" in found["notes"][-1]


def test_a_file_name_that_is_no_text_does_not_cost_the_report(sources: Make) -> None:
    made = ReportMaker(sources()).begin(moment())
    made["threads"][0]["frames"][0]["file"] = "caf\udce9.py"
    assert json.loads(encoded(made))["threads"][0]["frames"][0]["file"] == "caf\udce9.py"


@pytest.mark.parametrize("is_asked", [True, False])
def test_the_job_waits_for_a_look_from_another_thread(
    sources: Make, monkeypatch: pytest.MonkeyPatch, is_asked: bool
) -> None:
    """Or all that it drops meanwhile would stay until the look is over, where memory is short."""
    seen: list[float] = []

    def look(*arguments: Any, **options: Any) -> Any:
        seen.append(sys.getswitchinterval())
        return SimpleNamespace(rows=[], garbage_bytes=None, is_complete=True)

    monkeypatch.setattr(report_module, "largest_tensors", look)
    before_s = sys.getswitchinterval()
    of = Moment(12, "asked", thread_number=None) if is_asked else moment()
    whole(ReportMaker(sources()), of)
    assert seen == [pytest.approx(HOLD_S if is_asked else before_s)]
    assert sys.getswitchinterval() == before_s
