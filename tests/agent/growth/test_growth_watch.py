"""When it is looked and searched, how that ends, and what is said of what is not in Python."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tests.support.growth_rig import GrowthRig, holder_of, line_of
from vramscope.growth import growth_watch
from vramscope_protocol.commands import ExplainGrowthParams, Receipt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch


class Everything(set[int]):
    """All addresses."""

    def __contains__(self, address: object) -> bool:
        return True


def test_what_another_process_was_given(rig: GrowthRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "vramscope.growth.shared_storages.SharedStorages.install",
        lambda shared: setattr(shared, "addresses", Everything()),
    )
    # Nothing in Python has what was sent. Here a graph has it, as the sender's C++ on a GPU does.
    report = rig.run("""
        graphs = []
        def send(t):
            graphs.append((torch.ones(1, requires_grad=True) * t).sum().grad_fn)
        def main():
            for _ in STEPS:
                send(torch.ones(64, 64))
                train()
        main()
    """)
    holder = holder_of(report)
    assert (holder["kind"], holder["chain"]) == ("ipc", ["CUDA IPC (another process)"])


def test_nothing_grows_in_a_job_that_keeps_nothing(rig: GrowthRig) -> None:
    report = rig.run("""
        def main():
            for _ in STEPS:
                train()
        main()
    """)
    assert report["groups"] == []
    assert rig.watch is not None
    assert not rig.watch.is_on


def test_a_full_buffer_whose_members_are_replaced_does_not_grow(rig: GrowthRig) -> None:
    rig.first = 15
    report = rig.run("""
        buffer = collections.deque(maxlen=12)
        for _ in STEPS:
            buffer.append(torch.ones(64, 64))
            train()
    """)
    assert report["groups"] == []


def test_a_recording_of_the_job_is_used_and_left_alone(rig: GrowthRig) -> None:
    report = rig.run("""
        torch.cuda.memory._record_memory_history("all", stacks="python")
        kept = []
        for _ in STEPS:
            kept.append(torch.ones(64, 64))
            train()
        assert torch._C._cuda_isHistoryEnabled()
        torch.cuda.memory._record_memory_history(None)
    """)
    assert line_of(report["groups"][0]) == rig.line("kept.append")
    assert any("another recording" in note for note in report["notes"])


def test_a_recording_that_the_job_begins_meanwhile_ends_the_looks(rig: GrowthRig) -> None:
    report = rig.run("""
        kept = []
        for number in STEPS:
            kept.append(torch.ones(64, 64))
            if number == 4:
                torch.cuda.memory._record_memory_history("all", stacks="python")
            train()
        assert torch._C._cuda_isHistoryEnabled()
        torch.cuda.memory._record_memory_history(None)
    """)
    assert not report["complete"]
    assert any("ended early" in note for note in report["notes"])


def test_looks_are_cancelled_with_what_was_seen(rig: GrowthRig) -> None:
    def cancel() -> Receipt | None:
        if rig.steps != 6 or rig.watch is None:
            return None
        return rig.watch.cancel("no optimizer step within 30 s")

    rig.before_poll = cancel
    with pytest.raises(AssertionError, match="no optimizer step within 30 s; 2 looks in 2 steps"):
        rig.run("""
            kept = []
            for _ in STEPS:
                kept.append(torch.ones(64, 64))
                train()
        """)


def test_searches_wait_until_they_are_within_the_budget(
    rig: GrowthRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth_watch, "MOST_WAIT_BY_NAME_NS", 10**18)
    allowed: list[bool] = []

    def may_take(self: Any, expected_ns: int, now_ns: int) -> bool:
        del self, now_ns
        if expected_ns:
            allowed.append(len(allowed) >= 5)
        return not expected_ns or allowed[-1]

    monkeypatch.setattr("vramscope.growth.pace.LookPace.may_take", may_take)
    report = rig.run("""
        kept = []
        for _ in STEPS:
            kept.append(torch.ones(64, 64))
            train()
    """)
    assert allowed == [False] * 5 + [True]
    assert holder_of(report)["chain"][0] == "kept"


def test_a_search_upwards_is_expected_to_take_no_less_than_the_one_by_name(
    rig: GrowthRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected: list[int] = []

    def may_take(self: Any, expected_ns: int, now_ns: int) -> bool:
        del self, now_ns
        if expected_ns:
            expected.append(expected_ns)
        return True

    monkeypatch.setattr("vramscope.growth.pace.LookPace.may_take", may_take)
    monkeypatch.setattr(growth_watch, "MOST_WAIT_BY_NAME_NS", 10**18)
    monkeypatch.setattr(growth_watch, "MOST_WAIT_NS", 10**18)
    monkeypatch.setattr(growth_watch, "UPWARDS_NS", 1)
    rig.run("""
        class Cycle:
            def __init__(self, t):
                self.t = t
        def main():
            for _ in STEPS:
                node = Cycle(torch.empty(64, 64))
                node.me = node
                train()
        main()
    """)
    by_name_ns, upwards_ns = expected
    assert by_name_ns == growth_watch.BY_NAME_NS
    assert upwards_ns in rig.costs_ns
    assert upwards_ns > 1


def test_looks_begin_anew_when_a_collection_has_freed_what_grew(rig: GrowthRig) -> None:
    report = rig.run("""
        class Cycle:
            def __init__(self, t):
                self.t = t
        def main():
            for number in STEPS:
                node = Cycle(torch.empty(64, 64))
                node.me = node
                if number == 4:
                    gc.collect()
                train()
        main()
    """)
    assert holder_of(report)["kind"] == "garbage"
    assert report["steps"][0] >= 5
    live = report["live_bytes_at_looks"]
    assert live == sorted(live)


def test_nothing_is_collected_while_it_is_looked_for(
    rig: GrowthRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(*args: Any, **options: Any) -> list[Any]:
        was_on.append(gc.isenabled())
        return []

    was_on: list[bool] = []
    monkeypatch.setattr("vramscope.growth.group_holders.GroupHolders.find", find)
    rig.run("""
        gc.enable()
        for _ in STEPS:
            train()
            assert gc.isenabled()
    """)
    assert was_on == [False]


def test_one_that_cannot_begin_leaves_no_recording_on() -> None:
    ended: list[str] = []

    class Recording:
        def start(self, issued_by: str) -> None:
            ended.append(issued_by)

        def stop(self) -> None:
            ended.append("stopped")

    class Device:
        def segments(self) -> Any:
            raise RuntimeError("no segments")

    device: Any = Device()
    recording: Any = Recording()
    before = torch.storage.TypedStorage._share_cuda_
    with pytest.raises(RuntimeError, match="no segments"):
        growth_watch.GrowthWatch(device, recording, ExplainGrowthParams(), "c1", lambda ns: None)
    assert ended == ["c1", "stopped"]
    assert torch.storage.TypedStorage._share_cuda_ is before
