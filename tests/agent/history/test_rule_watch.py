"""The sampler sees, the training thread begins, and not again for an hour."""

from __future__ import annotations

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.history_rig import HistoryRig
from vramscope.devices.device import DeviceMemory
from vramscope.history.rule import INTERVAL_S, HistoryRule
from vramscope.history.rule_watch import RuleWatch
from vramscope_protocol.messages import Event

FULL = DeviceMemory(total_bytes=1000, used_bytes=950)
EMPTY = DeviceMemory(total_bytes=1000, used_bytes=10)


class Watch:
    def __init__(self, rig: HistoryRig) -> None:
        self.clock = FakeClock()
        self.events: list[Event] = []
        self.watch = RuleWatch(
            HistoryRule(90, 2), rig.history, rig.device, self.clock, self.events.append
        )


@pytest.fixture
def watch(rig: HistoryRig) -> Watch:
    return Watch(rig)


def test_it_begins_at_the_next_boundary(rig: HistoryRig, watch: Watch) -> None:
    watch.watch.look(0, EMPTY)
    watch.watch.at_boundary(1)
    assert rig.pytorch.calls == []
    watch.watch.look(0, FULL)
    assert rig.pytorch.calls == []
    watch.watch.at_boundary(2)
    assert rig.history.window is not None
    assert rig.history.window.origin == "rule"
    assert rig.history.window.params.steps == 2
    (event,) = watch.events
    assert event.kind == "history"
    assert event.step == 2
    assert event.text == "the device is more than 90% full: recording the history of 2 steps"


def test_the_snapshot_says_which_rule_it_is_of(rig: HistoryRig, watch: Watch) -> None:
    watch.watch.look(0, FULL)
    watch.watch.at_boundary(1)
    rig.history.at_boundary(2)
    rig.history.at_boundary(3)
    rig.history.close(10)
    (begin,) = rig.begins
    assert (begin.origin, begin.issued_by) == ("rule", "above 90% for 2 steps")


def test_how_it_ended_is_an_event(rig: HistoryRig, watch: Watch) -> None:
    watch.watch.look(0, FULL)
    watch.watch.at_boundary(1)
    rig.history.at_boundary(2)
    rig.history.at_boundary(3)
    rig.history.close(10)
    watch.watch.look(0, EMPTY)
    watch.watch.look(0, EMPTY)
    _, end = watch.events
    assert end.data["snapshot"] == rig.shipped[0].begin.id
    assert end.text.startswith("Snapshot ")


def test_one_that_ended_early_is_told_with_the_reason(rig: HistoryRig, watch: Watch) -> None:
    watch.watch.look(0, FULL)
    watch.watch.at_boundary(1)
    watch.watch.look(0, FULL)
    assert len(watch.events) == 1
    rig.history.at_boundary(2)
    rig.history.stop("history_stop came first")
    watch.watch.look(0, FULL)
    assert watch.events[-1].text == (
        "history_stop came first; recording stopped after 1 of 2 steps"
    )
    assert watch.events[-1].data["snapshot"] is None


def test_at_most_once_an_hour(rig: HistoryRig, watch: Watch) -> None:
    watch.watch.look(0, FULL)
    watch.watch.at_boundary(1)
    rig.history.stop("x")
    watch.clock.advance(INTERVAL_S - 1)
    watch.watch.look(0, FULL)
    watch.watch.at_boundary(2)
    assert rig.history.window is None
    watch.clock.advance(1)
    watch.watch.look(0, FULL)
    watch.watch.at_boundary(3)
    assert rig.history.window is not None


def test_while_the_device_is_busy_it_waits(rig: HistoryRig, watch: Watch) -> None:
    watch.watch.look(0, FULL)
    rig.device.reason = "a CUDA graph is being captured"
    watch.watch.at_boundary(1)
    assert rig.history.window is None
    rig.device.reason = None
    watch.watch.at_boundary(2)
    assert rig.history.window is not None


def test_a_job_that_records_itself_is_left_alone_and_it_says_so(
    rig: HistoryRig, watch: Watch
) -> None:
    rig.pytorch.recording = True
    watch.watch.look(0, FULL)
    watch.watch.at_boundary(1)
    assert rig.pytorch.calls == []
    assert "not recorded: the job records a history of its own" in watch.events[0].text
