"""Jobs on a machine whose driver and torch are fakes, as real processes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.support.fake_server import FakeServer
from tests.support.job_process import REPOSITORY, child_environment, start, watched_command
from vramscope_protocol.messages import DeviceInfo, Event, Register

FAKE_DRIVER = REPOSITORY / "tests/support/fake_driver"

CUDA = """
import os, sys, time
from tests.support.fake_torch import FakeTorch, nested_stats

def fake_cuda(count, current=0):
    fake = FakeTorch((2, 6), count)
    fake.current_device = current
    sys.modules.update(fake.modules)
    return fake
"""
"""Begin of a script that gives itself a torch with fake CUDA devices."""


def driver_environment(
    devices: Sequence[dict[str, Any]] = (),
    errors: Mapping[str, str] = MappingProxyType({}),
    **extra: str,
) -> dict[str, str]:
    """Environment of a job that finds this driver.

    Args:
        devices: as :class:`tests.support.fake_nvml.FakeNvml` has them.
        errors: name of the error for each function of NVML that fails.
    """
    paths = [str(FAKE_DRIVER), child_environment()["PYTHONPATH"], str(REPOSITORY)]
    machine = json.dumps({"devices": list(devices), "errors": dict(errors)})
    return {"PYTHONPATH": os.pathsep.join(paths), "FAKE_NVML": machine, **extra}


def start_watched(
    script: Path, server: FakeServer, environment: dict[str, str], run: str = "r"
) -> subprocess.Popen[str]:
    """Start the script under ``vramscope run``."""
    command = watched_command(script, url=server.url, token=server.token, run=run)
    return start(command, **environment)


def last_device(server: FakeServer, stream: str | None = None) -> DeviceInfo | None:
    """What the server was told last about the device of the (only) stream."""
    told = [
        device
        for register in server.of_type(Register)
        if stream in (None, register.stream)
        for device in register.rank.devices
    ]
    events = [event.data["device"] for event in server.of_type(Event) if event.kind == "device"]
    if events:
        return DeviceInfo(**events[-1])
    return told[-1] if told else None
