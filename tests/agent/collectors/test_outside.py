"""The difference to the driver's number, step by step: named where something was seen, and whole.

The recipes of real reports: communicators of new groups, libraries at first use, a driver that does
not tell.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from vramscope.collectors.outside import (
    CONTEXT,
    CONTEXT_AND_MORE,
    EVENT_INTERVAL_NS,
    LASTING_READINGS,
    NOT_KNOWN,
    RESOLUTION_BYTES,
    Outside,
)
from vramscope.collectors.outside_signs import Signs
from vramscope.collectors.process_listing import ProcessListing
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.messages import Event

MIB = 1 << 20


class Process:
    """A process whose memory and libraries the test sets, read once a second."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.listing = ProcessListing()
        self.groups = 0
        self.libraries: set[str] = set()
        self.events: list[Event] = []
        self.step = 0
        self.outside = Outside(
            lambda: self.listing,
            clock=self.clock,
            emit=self.events.append,
            current_step=lambda: self.step,
            read_signs=lambda: Signs(self.groups, frozenset(self.libraries)),
            count_groups=lambda: self.groups,
        )

    def hold(self, outside_mib: float, reserved_mib: int = 0) -> dict[str, float]:
        """One reading; the parts in MiB, which are always all that there is."""
        outside_bytes = int(outside_mib * MIB)
        reserved = reserved_mib * MIB
        self.listing = ProcessListing(outside_bytes + reserved, reserved)
        self.clock.advance(1.0)
        parts = self.outside.read()
        assert sum(part.bytes for part in parts) == max(0, outside_bytes)
        assert all(part.bytes > 0 and part.how for part in parts)
        return {part.name: part.bytes / MIB for part in parts}

    def settle(self, outside_mib: float, reserved_mib: int = 1000) -> dict[str, float]:
        """Readings until a step up or down has lasted."""
        parts = [self.hold(outside_mib, reserved_mib) for _ in range(LASTING_READINGS)]
        return parts[-1]


@pytest.fixture
def process() -> Process:
    return Process()


def test_before_cuda_is_up_there_is_nothing(process: Process) -> None:
    assert process.outside.read() == []
    assert process.hold(0) == {}
    assert process.events == []


def test_the_first_difference_is_the_context(process: Process) -> None:
    assert process.hold(520) == {CONTEXT: 520}
    # CUDA goes on coming up, before the first step.
    assert process.settle(524) == {CONTEXT: 524}


def test_of_a_job_that_is_on_its_way_the_first_look_is_not_divided(process: Process) -> None:
    assert process.hold(900, reserved_mib=5000) == {CONTEXT_AND_MORE: 900}


def test_each_group_of_processes_is_named_with_what_it_took(process: Process) -> None:
    process.hold(500)
    process.step = 100
    for groups in (1, 2, 3):
        process.groups = groups
        parts = process.settle(500 + 300 * groups)
        assert parts == {CONTEXT: 500, "NCCL": 300 * groups}
    (nccl,) = (part for part in process.outside.read() if part.name == "NCCL")
    assert nccl.how == "came when NCCL came, by step 100; 3 process groups"


def test_a_group_that_is_used_long_after_it_was_made_is_still_its_reason(process: Process) -> None:
    process.hold(500)
    process.groups = 1
    process.step = 1
    for _ in range(100):
        process.hold(500, 1000)
    assert process.settle(800) == {CONTEXT: 500, "NCCL": 300}


def test_a_library_at_its_first_use_is_named(process: Process) -> None:
    process.libraries = {"libcublas.so.13"}
    process.hold(500)
    process.step = 3
    process.libraries.add("libcudnn_engines_precompiled.so.9")
    assert process.settle(650) == {CONTEXT: 500, "cuDNN": 150}
    assert process.settle(654)[NOT_KNOWN] == 4


def test_a_library_that_was_there_long_before_explains_nothing(process: Process) -> None:
    process.hold(500)
    process.step = 3
    process.libraries = {"libcudnn_ops.so.9"}
    for _ in range(60):
        process.hold(500, 1000)
    assert process.settle(650) == {CONTEXT: 500, NOT_KNOWN: 150}


def test_what_nothing_explains_is_not_known_and_says_so(process: Process) -> None:
    process.hold(500)
    process.step = 9
    assert process.settle(530) == {CONTEXT: 500, NOT_KNOWN: 30}
    assert process.settle(560) == {CONTEXT: 500, NOT_KNOWN: 60}
    assert "nothing was seen" in process.outside.read()[-1].how


def test_a_step_must_last_before_it_is_named(process: Process) -> None:
    process.hold(500)
    process.step = 1
    process.groups = 1
    # The driver's number and PyTorch's are not of the very same instant.
    assert process.hold(700, 1000) == {CONTEXT: 500, NOT_KNOWN: 200}
    assert process.hold(500, 1200) == {CONTEXT: 500}
    assert process.hold(300, 1200) == {CONTEXT: 300}
    assert process.hold(500, 1000) == {CONTEXT: 500}


def test_below_the_resolution_of_the_driver_nothing_is_claimed(process: Process) -> None:
    process.hold(500)
    process.step = 1
    process.groups = 1
    below = (RESOLUTION_BYTES - 1) / MIB
    parts = process.settle(500 + below)
    assert set(parts) == {CONTEXT, NOT_KNOWN}
    assert parts[CONTEXT] == 500


def test_what_is_given_back_is_taken_from_what_came_last(process: Process) -> None:
    process.hold(500)
    process.step = 1
    process.groups = 1
    process.settle(800)
    process.libraries.add("libcufft.so.12")
    assert process.settle(900) == {CONTEXT: 500, "NCCL": 300, "cuFFT": 100}
    assert process.settle(860) == {CONTEXT: 500, "NCCL": 300, "cuFFT": 60}
    process.groups = 0  # destroy_process_group
    assert process.settle(560) == {CONTEXT: 500, "cuFFT": 60}


@pytest.mark.parametrize(
    "listing",
    [
        ProcessListing(UNKNOWN, 100),  # WSL2, a container, a driver that does not tell
        ProcessListing(100, 200),  # numbers of different instants
    ],
)
def test_without_a_difference_nothing_is_claimed(process: Process, listing: Any) -> None:
    process.listing = listing
    assert process.outside.read() == []
    assert process.events == []


def test_a_reading_that_fails_forgets_nothing(process: Process) -> None:
    process.hold(500)
    process.listing = ProcessListing()
    assert process.outside.read() == []
    assert process.hold(500, 900) == {CONTEXT: 500}


def test_each_change_is_an_event_and_they_keep_apart(process: Process) -> None:
    process.hold(500)
    process.clock.advance(EVENT_INTERVAL_NS / 1e9)
    process.step = 7
    process.groups = 1
    process.settle(800)
    process.groups = 2
    process.settle(1100)
    process.hold(1100, 1000)
    process.clock.advance(EVENT_INTERVAL_NS / 1e9)
    process.hold(1100, 1000)
    process.hold(1100, 1000)
    assert [event.kind for event in process.events] == ["outside"] * 3
    last = process.events[-1]
    assert last.step == 7
    assert last.data["bytes"] == 1100 * MIB
    assert [part["name"] for part in last.data["parts"]] == [CONTEXT, "NCCL"]
    assert "NCCL 600 MiB" in last.text
