"""When it is looked and searched, how that ends, and what is said of what is not in Python."""

from __future__ import annotations

import gc
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.growth_devices import Clocks, GrowingDevice, Recording, SideStreamDevice
from tests.support.growth_rig import GrowthRig, holder_of, line_of
from vramscope.growth import growth_watch
from vramscope.growth.group_holders import Held
from vramscope.growth.search_plan import SearchPlan
from vramscope_protocol.commands import Receipt
from vramscope_protocol.parameters import ExplainGrowthParams

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

MIB = 1 << 20


def without_borrowing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first search by name wait like any other."""
    begin = SearchPlan.__init__

    def waits(plan: SearchPlan, most_ns: int) -> None:
        begin(plan, most_ns)
        plan._may_borrow = False

    monkeypatch.setattr(SearchPlan, "__init__", waits)


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


def test_of_what_is_held_it_is_told_whether_steps_write_to_it(rig: GrowthRig) -> None:
    report = rig.run("""
        average, copy = torch.zeros(1 << 19), torch.zeros(1 << 19)
        for _ in STEPS:
            train()
            average.mul_(0.9)
    """)
    assert report["groups"] == []
    is_written = {each["holders"][0]["chain"][0]: each["is_written"] for each in report["held"]}
    assert is_written == {"average": True, "copy": False}


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


def test_searches_wait_until_they_are_within_the_budget_and_nothing_is_recorded_meanwhile(
    rig: GrowthRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    without_borrowing(monkeypatch)

    def left_ns(self: Any, now_ns: int) -> int:
        del self, now_ns
        assert rig.history is not None
        asked.append(rig.history.window is not None)
        return 10**9 if len(asked) > 12 else 0

    monkeypatch.setattr("vramscope.growth.pace.LookPace.left_ns", left_ns)
    report = rig.run("""
        kept = []
        for _ in STEPS:
            kept.append(torch.ones(64, 64))
            train()
    """)
    assert len(asked) > 12
    assert not any(asked)
    assert holder_of(report)["chain"][0] == "kept"
    assert line_of(report["groups"][0]) == rig.line("kept.append")
    assert len(report["steps"]) == rig.params.looks


@pytest.mark.parametrize("kept_again", [0, 60])
def test_what_a_collection_frees_while_a_search_waits_is_looked_at_anew(
    rig: GrowthRig, monkeypatch: pytest.MonkeyPatch, kept_again: int
) -> None:
    waiting: list[int] = []
    without_borrowing(monkeypatch)

    def left_ns(self: Any, now_ns: int) -> int:
        del self, now_ns
        waiting.append(rig.steps)
        return 10**9 if len(waiting) > 12 else 0

    monkeypatch.setattr("vramscope.growth.pace.LookPace.left_ns", left_ns)
    rig.run(f"""
        class Cycle:
            def __init__(self, t):
                self.t = t
        other = []
        def main():
            for number in STEPS:
                node = Cycle(torch.empty(64, 64))
                node.me = node
                if number == 10:
                    gc.collect()
                    # Where as much comes as goes, memory does not fall.
                    other.extend(torch.ones(64, 96) for _ in range({kept_again}))
                train()
        main()
    """)
    report = rig.receipt.result if rig.receipt else {}
    assert holder_of(report)["kind"] == "garbage"
    assert report["steps"][0] > 10


@pytest.mark.parametrize("step_ms", [2, 10, 20, 50])
def test_the_answer_comes_soon_and_all_is_two_percent_of_the_time_when_another_may_be_asked(
    monkeypatch: pytest.MonkeyPatch, step_ms: int
) -> None:
    clocks = Clocks()
    monkeypatch.setattr(growth_watch, "time", clocks)

    def find(search: Any, groups: Any, *args: Any, **options: Any) -> Any:
        del search, args, options
        clocks.work(15.0)
        return [Held() for _ in groups]

    monkeypatch.setattr("vramscope.growth.group_holders.GroupHolders.find", find)
    recording = Recording()
    device: Any = GrowingDevice(clocks)
    told: list[int] = []
    watch = growth_watch.GrowthWatch(device, recording, ExplainGrowthParams(), "c1", told.append)
    steps, receipt = 0, None
    while receipt is None:
        clocks.wait(step_ms)
        device.blocks += 1
        steps += 1
        watch.poll(steps)
        receipt = watch.poll_on_agent_thread()
    assert receipt.result["groups"]
    assert sum(told) == clocks.thread_ns
    assert steps <= max(20, 200 / step_ms)
    assert 0 < recording.stopped_at <= steps
    assert not recording.is_on
    spent_ns = clocks.thread_ns + recording.cost_ns(device.allocations)
    clocks.wait(watch.owed_ns(clocks.wall_ns) / 1e6)
    assert spent_ns / clocks.wall_ns <= 0.0201


def test_lines_are_told_while_it_is_searched_on_for_what_holds_them(
    rig: GrowthRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[int] = []
    rig.on_answer = lambda: answers.append(rig.steps)
    monkeypatch.setattr(
        "vramscope.growth.pace.LookPace.left_ns",
        lambda pace, now_ns: 10**9 if rig.steps >= 40 else 0,
    )
    report = rig.run("""
        class Cycle:
            def __init__(self, t):
                self.t = t
        def main():
            for number in STEPS:
                node = Cycle(torch.empty(64, 64))
                node.me = node
                train()
        main()
    """)
    told = rig.so_far[0].result
    assert (told["holders_follow"], told["complete"]) == (True, False)
    assert line_of(told["groups"][0]) == rig.line("torch.empty")
    assert told["groups"][0]["holders"] == []
    # Nothing else is known of it until the search through all objects, which waits.
    assert not report["holders_follow"]
    assert holder_of(report)["kind"] == "garbage"
    assert answers[0] < 40 <= answers[-1]


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


def test_what_waits_for_another_stream_is_told_by_its_line_though_nothing_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks = Clocks()
    monkeypatch.setattr(growth_watch, "time", clocks)

    # How long a real search takes depends on all that tests before have left in this process.
    nothing = Mock(return_value=[])
    monkeypatch.setattr("vramscope.growth.group_holders.GroupHolders.find", nothing)
    device: Any = SideStreamDevice(clocks)
    params = ExplainGrowthParams(looks=3, every=1, max_steps=16)
    watch = growth_watch.GrowthWatch(device, Recording(), params, "c1", lambda ns: None)
    receipt = None
    for step in range(1, 400):
        clocks.wait(20)
        device.blocks += 1
        watch.poll(step)
        receipt = receipt or watch.poll_on_agent_thread()
    assert receipt is not None
    report = receipt.result
    assert report["groups"] == []
    (waiting,) = report["waiting"]
    assert [frame["line"] for frame in waiting["stack"]] == [31]
    assert (waiting["bytes"], waiting["count"]) == (4 * 24 * MIB, 4)
    assert len(report["steps"]) == 1
    # Not one with every step: one at the begin, where more waited than before, and for the search.
    assert device.looks <= 7


def test_one_that_cannot_begin_leaves_no_recording_on() -> None:
    class Device(GrowingDevice):
        def segments(self) -> Any:
            raise RuntimeError("no segments")

    device: Any = Device(Clocks())
    recording = Recording()
    before = torch.storage.TypedStorage._share_cuda_
    with pytest.raises(RuntimeError, match="no segments"):
        growth_watch.GrowthWatch(device, recording, ExplainGrowthParams(), "c1", lambda ns: None)
    assert not recording.is_on
    assert torch.storage.TypedStorage._share_cuda_ is before
