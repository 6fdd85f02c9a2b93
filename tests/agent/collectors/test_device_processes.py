"""Other processes on the device are named, never with what their command line says besides."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_clock import FakeClock
from vramscope.collectors import device_processes
from vramscope.collectors.device_processes import (
    CHANGE_BYTES,
    EVENT_INTERVAL_NS,
    DeviceProcesses,
    command_of,
)
from vramscope.collectors.process_listing import ProcessListing
from vramscope.processes import proc_files
from vramscope_protocol.messages import Event

OWN = os.getpid()
GIB = 1 << 30


class Rig:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.events: list[Event] = []
        self.listing = ProcessListing()
        self.processes = DeviceProcesses(
            lambda: self.listing,
            clock=self.clock,
            emit=self.events.append,
            current_step=lambda: 5,
        )

    def listed(self, *processes: tuple[int, int | None]) -> list[tuple[int, int | None]]:
        self.listing = ProcessListing(processes=processes)
        return [(each.pid, each.bytes) for each in self.processes.read()]


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with a secret among its arguments."""
    script = tmp_path / "serve_model.py"
    script.write_text("print('up', flush=True); input()\n")
    command = [sys.executable, str(script), "--token", "hunter2"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, env={"RANK": "3"}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
        process.kill()


def test_a_process_has_the_name_of_its_script_and_no_more(
    other: subprocess.Popen[str],
) -> None:
    assert command_of(other.pid) == "serve_model.py"


def test_a_process_that_has_ended_has_no_name(other: subprocess.Popen[str]) -> None:
    pid = other.pid
    other.kill()
    other.wait()
    assert command_of(pid) == ""


def test_other_ranks_of_this_job_are_called_that(
    other: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As the launcher's other child sees it: the same program, of the same parent.
    monkeypatch.setattr(os, "getppid", lambda: OWN)
    own = command_of(OWN)
    read = proc_files.read_proc
    script = read(other.pid, "cmdline")
    monkeypatch.setattr(
        device_processes,
        "read_proc",
        lambda pid, name: script if name == "cmdline" else read(pid, name),
    )
    assert command_of(other.pid) == "serve_model.py, rank 3 of this job"
    assert own != "serve_model.py"


def test_processes_come_with_the_largest_first() -> None:
    rig = Rig()
    assert rig.listed((OWN, GIB), (1, 3 * GIB)) == [(1, 3 * GIB), (OWN, GIB)]


def test_what_the_driver_does_not_tell_is_not_known() -> None:
    rig = Rig()
    assert rig.listed((OWN, None), (1, 5)) == [(1, 5), (OWN, None)]
    # One that computes and draws, of which only a part is known.
    assert rig.listed((1, 5), (1, None)) == [(1, None)]
    assert rig.listed((1, 5), (1, 6)) == [(1, 11)]


def test_in_a_container_nobody_is_seen() -> None:
    rig = Rig()
    rig.listing = ProcessListing(own_bytes=7, processes=None)
    assert rig.processes.read() == []
    assert rig.events == []


def test_who_comes_goes_or_grows_is_told_now_and_then(other: subprocess.Popen[str]) -> None:
    rig = Rig()
    rig.listed((OWN, GIB))
    assert rig.events == []  # alone on the device
    rig.listed((OWN, GIB), (other.pid, GIB))
    (came,) = rig.events
    assert came.kind == "processes"
    assert came.step == 5
    assert came.text == (
        f"one other process on the device: serve_model.py (pid {other.pid}, 1 GiB)"
    )
    assert [each["pid"] for each in came.data["processes"]] == [other.pid]

    rig.clock.advance(EVENT_INTERVAL_NS / 1e9)
    rig.listed((OWN, 2 * GIB), (other.pid, GIB + CHANGE_BYTES - 1))
    assert len(rig.events) == 1
    rig.listed((OWN, 2 * GIB), (other.pid, GIB + CHANGE_BYTES))
    assert len(rig.events) == 2
    rig.listed((OWN, 2 * GIB))
    assert len(rig.events) == 2  # too soon
    rig.clock.advance(EVENT_INTERVAL_NS / 1e9)
    rig.listed((OWN, 2 * GIB))
    assert rig.events[-1].text == "no other process on the device any more"
