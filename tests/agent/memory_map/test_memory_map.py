"""When the segments are looked at, by whom, and what is known when they cannot be."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.fake_device import FakeDevice
from tests.support.fake_torch import nested_stats
from tests.support.made_segments import MIB, many_segments, segment
from vramscope.collectors.self_cost import SelfCost
from vramscope.commands.call import Call
from vramscope.devices.device import DeviceMemory
from vramscope.memory_map.memory_map import NAMES, MemoryMap
from vramscope.memory_map.pace import MapPace
from vramscope.notices import Notices
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.commands import Receipt
from vramscope_protocol.parameters import WatchMapParams

HERE = 0x7F0000000000
NOTHING = (UNKNOWN,) * 4


class CountingDevice(FakeDevice):
    """Notes on which thread the segments were read; a read may take time."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.clock = clock
        self.reads: list[str] = []
        self.read_takes_s = 0.0

    def segments(self) -> list[dict[str, Any]]:
        self.reads.append(threading.current_thread().name)
        self.clock.advance(self.read_takes_s)
        return list(self.segment_list)


class Rig:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.device = CountingDevice(self.clock)
        self.device.segment_list = [segment(HERE, "a1 f2"), segment(HERE + 64 * MIB, "f8")]
        self.notices = Notices()
        self.step = 0
        self.pace = MapPace()
        self.cost = SelfCost(lambda: 0)
        self.map = MemoryMap(
            self.device,
            clock=self.clock,
            notices=self.notices,
            self_cost=self.cost,
            current_step=lambda: self.step,
            pace=self.pace,
        )

    def run(self, seconds: float, *, step_s: float | None = None, tick_s: float = 0.1) -> int:
        """Turns of the sampler, with step ends between them; how many looks were taken."""
        before = len(self.device.reads)
        next_step_s = step_s
        for turn in range(round(seconds / tick_s)):
            while next_step_s is not None and step_s is not None and next_step_s <= turn * tick_s:
                self.end_step()
                next_step_s += step_s
            self.map.tick()
            self.clock.advance(tick_s)
        return len(self.device.reads) - before

    def end_step(self) -> None:
        """On the training thread."""
        self.step += 1
        thread = threading.Thread(target=self.map.at_boundary, args=(self.step,), name="training")
        thread.start()
        thread.join()


def test_unwatched_it_looks_every_ten_seconds_for_the_samples() -> None:
    rig = Rig()
    assert rig.map.read() == NOTHING
    assert rig.run(0.2) == 1
    assert rig.map.names == NAMES
    assert rig.map.read() == (8 * MIB, 2 * MIB, 0, 8 * MIB)
    assert rig.run(30.0) == 3


def test_watched_it_looks_twice_a_second_until_the_lease_is_over() -> None:
    rig = Rig()
    rig.run(1.0)
    rig.map.watch(5.0, ask=True)
    assert 9 <= rig.run(4.9) <= 11
    rig.run(0.2)
    assert not rig.map.is_watched
    assert rig.run(8.0) <= 1


def test_a_lease_is_never_longer_than_a_minute() -> None:
    rig = Rig()
    rig.map.watch(1e9)
    rig.clock.advance(60.1)
    assert not rig.map.is_watched
    rig.map.watch(-1.0)
    assert not rig.map.is_watched


def test_while_steps_end_often_the_training_thread_takes_the_list_there() -> None:
    rig = Rig()
    rig.map.watch(60.0, ask=True)
    rig.end_step()
    rig.run(5.0, step_s=0.3)
    assert set(rig.device.reads) == {"training"}
    look = rig.map.latest
    assert look is not None
    assert look.is_step_end
    assert look.step is not None
    assert look.step > 5


def test_without_a_step_end_it_does_not_wait_longer_than_a_second() -> None:
    rig = Rig()
    rig.map.watch(60.0, ask=True)
    rig.end_step()
    rig.map.tick()
    assert rig.device.reads == []
    assert rig.run(1.2) == 1
    assert rig.device.reads == [threading.current_thread().name]
    look = rig.map.latest
    assert look is not None
    assert (look.is_step_end, look.step) == (False, 1)
    # The training thread comes late: the wish is gone.
    rig.end_step()
    assert len(rig.device.reads) == 1


def test_a_step_end_at_which_the_device_is_busy_is_passed_over() -> None:
    rig = Rig()
    rig.map.watch(60.0, ask=True)
    rig.end_step()
    rig.map.tick()
    rig.device.reason = "a memory pool is in use"
    rig.end_step()
    assert rig.device.reads == []
    rig.device.reason = None
    rig.end_step()
    assert rig.device.reads == ["training"]


def test_a_look_that_the_training_thread_never_hands_over_is_taken_anew() -> None:
    rig = Rig()
    rig.map.watch(60.0, ask=True)
    rig.end_step()
    rig.map.tick()
    rig.map._wanted.clear()  # as Ctrl-C in the middle of it leaves it
    assert rig.run(9.5) == 0
    assert rig.run(1.0) == 1


@pytest.mark.expects_guarded_errors
def test_a_failure_on_the_training_thread_stays_away_from_the_job() -> None:
    rig = Rig()
    rig.map.watch(60.0, ask=True)
    rig.end_step()
    rig.map.tick()

    def fails() -> list[dict[str, Any]]:
        raise RuntimeError("no snapshot")

    rig.device.segments = fails  # type: ignore[method-assign]
    rig.end_step()
    assert rig.map.latest is None


@pytest.mark.parametrize(("read_s", "looks"), [(0.0005, 20), (0.005, 5), (0.02, 1)])
def test_the_rate_follows_what_a_look_costs(read_s: float, looks: int) -> None:
    rig = Rig()
    rig.device.read_takes_s = read_s
    rig.map.watch(60.0, ask=True)
    rig.run(0.2)
    taken = rig.run(10.0)
    assert looks - 1 <= taken <= looks + 1
    assert read_s * taken / 10.0 <= 0.0026
    slow = taken < 20
    assert any("the memory map is read every" in text for text in rig.notices.texts()) == slow
    assert (rig.map.rate_hz < 2.0) == slow


def test_a_look_that_is_too_dear_comes_on_request_only() -> None:
    rig = Rig()
    rig.device.read_takes_s = 0.2
    rig.device.segment_list = many_segments(10, 100)
    for _ in range(2):
        rig.pace.account_look(200_000_000)
    rig.map.watch(60.0, ask=True)
    rig.run(0.2)
    assert rig.map.rate_hz == 0.0
    assert rig.run(50.0) == 0
    assert rig.notices.texts() == ["the memory map is read on request only: it has 1,000 blocks"]
    rig.map.watch(60.0, ask=True)
    assert rig.run(10.0) == 1
    rig.map.watch(60.0)
    assert rig.run(10.0) == 0


def test_so_many_blocks_that_nobody_knows_the_cost_are_not_looked_at_unasked() -> None:
    rig = Rig()
    stats: dict[str, Any] = dict(nested_stats())
    stats["active"] = {"all": {"current": 300_000}}
    rig.device.stats = stats
    assert rig.run(20.0) == 0
    latest = rig.map.latest
    assert latest is not None
    assert latest.why_not == "300,000 blocks are looked at on request only"
    rig.map.watch(60.0, ask=True)
    assert rig.run(0.2) == 1


def test_why_there_is_no_map_is_known_and_nothing_is_read() -> None:
    rig = Rig()
    rig.run(0.2)
    rig.device.no_segments_because = "memory history is being recorded"
    rig.map.watch(60.0, ask=True)
    assert rig.run(5.0) == 0
    latest = rig.map.latest
    assert latest is not None
    assert latest.why_not == "memory history is being recorded"
    assert rig.map.read() == NOTHING
    rig.device.no_segments_because = None
    assert rig.run(1.0) >= 1
    assert rig.map.read()[0] == 8 * MIB


def test_no_look_at_a_step_end_either_while_there_is_a_reason() -> None:
    rig = Rig()
    rig.map.watch(60.0, ask=True)
    rig.end_step()
    rig.map.tick()
    rig.device.no_segments_because = "a pool allocates through Python code"
    rig.end_step()
    assert rig.run(2.0, step_s=0.2) == 0


def test_limit_and_what_is_left_are_read_while_somebody_watches() -> None:
    rig = Rig()
    rig.run(0.2)
    assert (rig.map.limit_bytes, rig.map.device_free_bytes) == (None, None)
    rig.map.watch(60.0, ask=True)
    rig.run(0.2)
    assert (rig.map.limit_bytes, rig.map.device_free_bytes) == (1000, 600)
    rig.device.memory = DeviceMemory()
    rig.run(1.0)
    assert rig.map.device_free_bytes is None


def test_what_it_costs_is_counted_apart_from_the_sampler() -> None:
    rig = Rig()
    rig.device.read_takes_s = 0.001
    rig.map.watch(60.0, ask=True)
    rig.run(0.2)
    assert rig.map.spent_ns >= 1_000_000
    rig.end_step()
    rig.run(4.0, step_s=0.2)
    assert {"map", "map at step ends"} <= set(rig.cost.parts_us())


def test_the_command_watches_and_says_why_there_is_nothing() -> None:
    rig = Rig()
    watch = rig.map.handlers()["watch_map"]
    receipt = watch(Call(params=WatchMapParams(seconds=5.0)))
    assert isinstance(receipt, Receipt)
    assert (receipt.state, receipt.message) == ("done", "The map is sent for 5 s.")
    assert rig.map.is_watched
    rig.device.no_segments_because = "the job has not used the device yet"
    receipt = watch(Call(params=WatchMapParams()))
    assert isinstance(receipt, Receipt)
    assert receipt.message == "There is no map now: the job has not used the device yet."
