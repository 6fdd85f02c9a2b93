"""On a real GPU: windows of recording, what they cost, and what comes out of them."""

from __future__ import annotations

import pickle
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_device import FakeDevice
from tests.support.job_process import (
    REPOSITORY,
    Api,
    finish,
    foreign_lines,
    start,
    wait_until,
    watched_command,
)
from tests.support.server_process import ServerProcess
from vramscope.collectors.self_cost import SelfCost
from vramscope.history.backward_lines import is_supported
from vramscope.history.history import History
from vramscope.history.host_memory import entries_within, resident_bytes
from vramscope.history.pytorch_history import HistoryMode, PytorchHistory
from vramscope.history.snapshot_folder import SnapshotFolder
from vramscope.transport.snapshot_lane import Shipment
from vramscope_analysis.snapshot import read_snapshot
from vramscope_protocol.parameters import HistoryParams

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(400)]

JOB = REPOSITORY / "tests/support/jobs/gpu_recorded.py"
MIB = 1 << 20


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


def recorded(
    api: Api, folder: Path, *arguments: str, **params: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Record some steps of the job; the receipt and the snapshot that it names."""
    job = start(watched_command(JOB, *arguments, url=api.url, token=api.token, run="recorded"))
    try:
        api.wait_for_run("recorded", lambda run: (run["step"] or 0) > 5, "first steps")
        posted = {"params": {"steps": 5, **params}, "deadline_s": 60}
        receipt = api.command("recorded", "history_start", **posted)["receipts"]["0"]
        assert receipt["state"] == "done", receipt
        path = f"/api/v1/snapshots/{receipt['result']['snapshot']}"
        wait_until(lambda: api.get(path)["state"], lambda state: state == "complete", "it")
        job.terminate()
        code, output, errors = finish(job)
    finally:
        job.kill()
    assert (code, foreign_lines(errors)) == (0, ["every step was right"]), output + errors
    file = folder / "recorded.pickle"
    request = urllib.request.Request(f"{api.url}{path}/pickle")
    request.add_header("Authorization", f"Bearer {api.token}")
    with urllib.request.urlopen(request, timeout=60) as response:
        file.write_bytes(response.read())
    read_snapshot(str(file))
    return receipt, pickle.loads(file.read_bytes())


def entries(snapshot: dict[str, Any], action: str) -> list[dict[str, Any]]:
    return [e for trace in snapshot["device_traces"] for e in trace if e["action"] == action]


def names_the_job(entry: dict[str, Any]) -> bool:
    return any(frame["filename"] == str(JOB) for frame in entry.get("frames", ()))


def test_a_window_has_every_event_of_its_steps(api: Api, tmp_path: Path) -> None:
    receipt, snapshot = recorded(api, tmp_path)
    result = receipt["result"]
    assert result["steps_recorded"] == 5
    assert result["entries"] == sum(map(len, snapshot["device_traces"]))
    allocations = entries(snapshot, "alloc")
    assert len(allocations) > 5 * 5
    assert any(map(names_the_job, allocations))
    assert len(entries(snapshot, "free_completed")) > 5 * 5
    (listed,) = api.get("/api/v1/runs/recorded/snapshots")["snapshots"]
    steps = [step for step, _ in listed["steps"]]
    assert steps == list(range(steps[0], steps[0] + 5))
    print(f"\nthe job waited {result['gil_ms']:.1f} ms for {result['entries']} events")


def test_pytorchs_own_viewer_opens_it(api: Api, tmp_path: Path) -> None:
    viz = pytest.importorskip("torch.cuda._memory_viz")
    _, snapshot = recorded(api, tmp_path, mode="all")
    assert "MemoryViz" in viz.trace_plot(snapshot)
    assert "entries" in viz.trace(snapshot)


def test_live_blocks_have_the_stack_of_their_allocation(api: Api, tmp_path: Path) -> None:
    _, snapshot = recorded(api, tmp_path, mode="state")
    blocks = [b for s in snapshot["segments"] for b in s["blocks"]]
    # Those that are older than the recording have none: parameters. What each step makes has one.
    assert any(map(names_the_job, blocks))
    assert any(not block["frames"] for block in blocks if block["state"] == "active_allocated")
    assert sum(map(len, snapshot["device_traces"])) <= len(snapshot["device_traces"])


def test_running_out_of_memory_in_a_window_is_in_it(api: Api, tmp_path: Path) -> None:
    _, snapshot = recorded(api, tmp_path, "--too-much")
    refused = entries(snapshot, "oom")
    assert len(refused) >= 4
    assert all(entry["size"] >= 1 << 50 for entry in refused)


def test_graphs_that_are_captured_in_a_window_are_right(api: Api, tmp_path: Path) -> None:
    _, snapshot = recorded(api, tmp_path, "--captures")
    assert entries(snapshot, "alloc")


def test_a_backward_pass_names_the_line_of_its_forward(api: Api, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    if not is_supported():
        pytest.skip("this torch has no memory metadata")
    _, snapshot = recorded(api, tmp_path, backward_lines=True)
    marked = [e for e in entries(snapshot, "alloc") if e["user_metadata"]]
    assert marked
    own = f"backward of {JOB}:"
    assert sum(entry["user_metadata"].startswith(own) for entry in marked) > len(marked) / 2
    # These run on a thread of autograd's, where there is no Python to take a stack of.
    assert any(not names_the_job(entry) for entry in marked)


# ------------------------------------------------------------------------- in this process


@pytest.fixture
def torch() -> Any:
    module: Any = pytest.importorskip("torch")
    module.zeros(1, device="cuda")
    yield module
    module.cuda.memory._record_memory_history(None)


@pytest.fixture
def history(torch: Any, tmp_path: Path) -> Iterator[tuple[History, list[Shipment]]]:
    shipped: list[Shipment] = []
    folder = SnapshotFolder(str(tmp_path / "spool"), "one", 1 << 30)
    history = History(
        PytorchHistory(emulated=False),
        FakeDevice(),
        folder,
        shipped.append,
        SelfCost(lambda: 0),
    )
    yield history, shipped
    history.close(10)
    history.remove_folder()


def churn(torch: Any, pairs: int) -> None:
    for _ in range(pairs):
        block = torch.empty(1 << 12, device="cuda")
        del block


def deep(call: Callable[[], None], depth: int = 40) -> None:
    """Call with as many frames below as a real job has."""
    if depth:
        deep(call, depth - 1)
    else:
        call()


def test_a_full_ring_and_its_snapshot_stay_within_the_budget(
    torch: Any, history: tuple[History, list[Shipment]]
) -> None:
    windows, shipped = history
    for mode in ("alloc", "all"):
        window = windows.start(HistoryParams(mode, max_mib=64, steps=1), "command", "c")
        before = resident_bytes() or 0
        deep(partial(churn, torch, 2 * window.max_entries // 3))
        ring_bytes = (resident_bytes() or 0) - before
        windows.at_boundary(1)
        with_snapshot_bytes = (resident_bytes() or 0) - before
        assert window.taking is not None, window.ended
        assert windows._writing is not None
        assert windows._writing.wait(120)
        print(
            f"\n{mode}: {window.max_entries} entries, ring {ring_bytes / window.max_entries:.0f} B"
            f" an entry, with the snapshot {with_snapshot_bytes / window.max_entries:.0f} B"
        )
        assert with_snapshot_bytes < 64 * MIB
    assert len(shipped) == 2


@pytest.mark.parametrize(
    ("mode", "stacks"),
    [("state", True), ("alloc", False), ("alloc", True), ("all", True)],
)
def test_what_each_mode_costs(torch: Any, mode: HistoryMode, stacks: bool) -> None:
    pytorch = PytorchHistory(emulated=False)
    pairs = 20_000

    def once() -> float:
        start_s = time.perf_counter()
        deep(lambda: churn(torch, pairs))
        return (time.perf_counter() - start_s) / pairs * 1e6

    once()
    plain_us = min(once() for _ in range(3))
    entries_most = entries_within(256 * MIB, mode, stacks=stacks)
    pytorch.start(mode, stacks=stacks, max_entries=entries_most)
    on_us = min(once() for _ in range(3))
    start_s = time.perf_counter()
    snapshot = pytorch.snapshot(traces=True)
    dump_ms = (time.perf_counter() - start_s) * 1e3
    pytorch.stop()
    count = sum(map(len, snapshot["device_traces"]))
    words = f"{mode}{' with stacks of 40 frames' if stacks else ''}"
    print(f"\n{words}: a pair {plain_us:.2f} -> {on_us:.2f} us; dump of {count}: {dump_ms:.0f} ms")
    assert count >= 1


def test_the_jobs_recording_wins_however_it_is_started(
    torch: Any, history: tuple[History, list[Shipment]]
) -> None:
    windows, _ = history
    memory = torch.cuda.memory
    imported = memory._record_memory_history
    for call in (imported, lambda *a, **o: memory._record_memory_history(*a, **o)):
        window = windows.start(HistoryParams(), "command", "c")
        churn(torch, 3)
        call("all", context=None, max_entries=50)
        assert window.ended == "the job has started or stopped a recording of its own"
        assert memory._record_memory_history is imported
        churn(torch, 1)
        trace = memory._snapshot()["device_traces"][torch.cuda.current_device()]
        assert [e["action"] for e in trace if e["action"] != "snapshot"] == [
            "alloc",
            "free_requested",
            "free_completed",
        ]
        assert torch._C._cuda_isHistoryEnabled()
        memory._record_memory_history(None)


def test_a_job_that_records_is_left_alone(
    torch: Any, history: tuple[History, list[Shipment]]
) -> None:
    windows, _ = history
    memory = torch.cuda.memory
    memory._record_memory_history("all", context=None, max_entries=50)
    churn(torch, 2)
    with pytest.raises(Exception, match="a history of its own"):
        windows.start(HistoryParams(), "command", "c")
    windows.close(0)
    assert torch._C._cuda_isHistoryEnabled()
    trace = memory._snapshot()["device_traces"][torch.cuda.current_device()]
    actions = [entry["action"] for entry in trace]
    assert actions.count("alloc") == actions.count("free_completed") == 2
