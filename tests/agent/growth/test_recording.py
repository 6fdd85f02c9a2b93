"""Stacks are recorded for as long as they are wanted, and never over somebody else's recording."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.history_rig import HistoryRig
from vramscope.growth.recording import STACK_NS, StackRecording
from vramscope_protocol.parameters import HistoryParams


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[HistoryRig]:
    rig = HistoryRig(tmp_path)
    yield rig
    rig.history.close(5.0)
    rig.history.remove_folder()


def test_stacks_of_live_blocks_and_nothing_more(rig: HistoryRig) -> None:
    recording = StackRecording(rig.history)
    recording.start("asked")
    ((_, mode, stacks, _),) = rig.pytorch.calls
    assert (mode, stacks) == ("state", True)
    assert (recording.note, recording.why_ended) == ("", "")
    recording.stop()
    assert not recording.is_on
    assert not rig.pytorch.recording
    assert rig.history.window is None
    recording.stop()  # a second time does nothing
    assert recording.why_ended == ""
    recording.start("asked")
    assert rig.pytorch.recording


def test_what_it_costs_is_told_by_the_allocations(rig: HistoryRig) -> None:
    recording = StackRecording(rig.history)
    recording.start("asked", allocations=1000)
    assert recording.cost_ns(1500) == 500 * STACK_NS
    recording.stop()
    assert recording.cost_ns(2000) == 0


def test_a_recording_of_the_job_is_left_alone(rig: HistoryRig) -> None:
    rig.pytorch.recording = True
    recording = StackRecording(rig.history)
    recording.start("asked")
    assert "another recording" in recording.note
    assert recording.cost_ns(100) == 0
    recording.stop()
    assert rig.pytorch.recording
    assert rig.pytorch.calls == []


def test_ours_ends_when_a_person_asks_for_another(rig: HistoryRig) -> None:
    recording = StackRecording(rig.history)
    recording.start("asked")
    window = rig.history.start(HistoryParams(steps=6), "command", "person")
    assert rig.history.window is window
    assert rig.pytorch.recording
    assert not recording.is_on
    assert recording.why_ended == "another recording was asked for"
    recording.stop()
    assert rig.history.window is window
    again = StackRecording(rig.history)
    again.start("asked again")
    assert rig.history.window is window
    assert "another recording" in again.note


def test_one_of_a_command_goes_on(rig: HistoryRig) -> None:
    window = rig.history.start(HistoryParams(), "command", "first")
    recording = StackRecording(rig.history)
    recording.start("asked")
    recording.stop()
    assert rig.history.window is window


def test_it_is_told_when_it_was_ended(rig: HistoryRig) -> None:
    recording = StackRecording(rig.history)
    recording.start("asked")
    rig.history.stop("history_stop came first")
    assert recording.why_ended == "history_stop came first"
