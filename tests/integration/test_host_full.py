"""A host that a job has filled, from its samples to the finding that a person reads."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_agent import socket_agent
from tests.support.server_process import ServerProcess

MIB = 1 << 20
GIB = 1 << 30
SECONDS = 60
BEFORE_WORKERS = 10


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path) as started:
        yield started


def columns(workers_bytes: int, pinned_bytes: int) -> dict[str, Any]:
    """A minute of a process with 16 GiB, whose workers start after ten seconds."""
    now_ns, later = time.time_ns(), SECONDS - BEFORE_WORKERS
    constant = {
        "host__limit_bytes": 16 * GIB,
        "host__limit_used_bytes": 15 * GIB,
        "host__anonymous_bytes": 9 * GIB,
        "host__workers_pss_bytes": workers_bytes,
        "host__pinned_reserved_bytes": pinned_bytes,
        "host__shm_size_bytes": 64 * MIB,
    }
    return {
        "time_ns": [now_ns + (second - SECONDS) * 10**9 for second in range(SECONDS)],
        "host__workers": [0] * BEFORE_WORKERS + [4] * later,
        "host__shm_used_bytes": [2 * MIB] * BEFORE_WORKERS + [62 * MIB] * later,
        **{name: [value] * SECONDS for name, value in constant.items()},
    }


def found_in(server: ServerProcess, run: str) -> dict[str, dict[str, Any]]:
    answer = server.request("GET", f"/api/v1/runs/{run}/findings?state=open")
    found = answer.body["findings"] if answer.status == 200 else []
    return {each["subject"]: each for each in found if each["kind"] == "host_full"}


def test_workers_and_pinned_copies_that_fill_the_host_are_told_with_their_bytes(
    server: ServerProcess,
) -> None:
    with socket_agent(server.url, server.token) as agent:
        run = agent.run.id
        agent.samples(SECONDS, **columns(4 * GIB, GIB))
        server.wait_until(lambda: len(found_in(server, run)) == 2, 30)
        found = found_in(server, run)
    host, shared = found["host memory"], found["shared memory"]
    assert host["summary"] == (
        "Host memory is nearly full: 1.0 GiB left of 16.0 GiB; 4 workers hold 4.0 GiB."
    )
    assert [(each["action"], each["predicted_bytes"]) for each in host["remedies"]] == [
        ("use 2 DataLoader workers in place of 4", 2 * GIB),
        ("do without pin_memory", GIB),
    ]
    assert all(each["cost"] for each in host["remedies"])
    assert shared["summary"].startswith("Shared memory is nearly full: 2.0 MiB left of 64.0 MiB")
    assert {each["action"]: each["predicted_bytes"] for each in shared["remedies"]} == {
        "use 2 DataLoader workers in place of 4": 30 * MIB,
        "halve prefetch_factor": 30 * MIB,
        "give the container more shared memory": None,
    }


def test_a_limit_that_the_file_cache_fills_is_nobodys_trouble(server: ServerProcess) -> None:
    with socket_agent(server.url, server.token) as agent:
        run = agent.run.id
        agent.samples(SECONDS, **columns(256 * MIB, 0))
        # Shared memory is full all the same, so it is known that the run was judged.
        server.wait_until(lambda: found_in(server, run), 30)
        assert list(found_in(server, run)) == ["shared memory"]
