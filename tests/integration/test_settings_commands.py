"""Settings that are changed while a job runs: the emulated allocator really follows them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import REPOSITORY, Api, finish, start, watched_command
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.torch, pytest.mark.timeout(180)]
pytest.importorskip("torch")

JOB = REPOSITORY / "tests/support/jobs/commanded.py"
RUN = "settings"
MIB = 1 << 20


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


@pytest.fixture
def job(api: Api) -> Iterator[subprocess.Popen[str]]:
    options = ("--emulate", "--capacity", "1GiB")
    command = watched_command(JOB, url=api.url, token=api.token, run=RUN, options=options)
    started = start(command, PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:64")
    api.wait_for_run(RUN, lambda run: (run["step"] or 0) > 2, "some steps", timeout_s=60)
    yield started
    started.terminate()
    finish(started)


def run(api: Api, name: str, **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = api.command(RUN, name, **body)["receipts"]["0"]
    return found


@pytest.mark.usefixtures("job")
def test_new_allocations_follow_what_was_set(api: Api) -> None:
    dry = run(
        api,
        "set_allocator_settings",
        params={"settings": "expandable_segments:True"},
        dry_run=True,
    )
    ordinary = run(api, "user.grow", params={"kib": 40 << 10})
    real = run(api, "set_allocator_settings", params={"settings": "expandable_segments:True"})
    again = run(api, "set_allocator_settings", params={"settings": "expandable_segments:True"})
    mapped = run(api, "user.grow", params={"kib": 40 << 10})
    assert dry["message"].startswith("Would set expandable_segments to True (it was default)")
    assert "holds for new allocations" in dry["message"]
    assert (ordinary["result"]["expandable"], mapped["result"]["expandable"]) == (0, 1)
    assert real["state"] == "done"
    assert real["before"]["allocator_settings"] == "max_split_size_mb:64"
    assert real["after"]["allocator_settings"] == "expandable_segments:True,max_split_size_mb:64"
    assert real["after"]["max_split_size_mb"] == "64"
    assert again["message"] == "All of it is set so already. Nothing was changed."


@pytest.mark.usefixtures("job")
def test_rounding_follows_and_one_wrong_part_changes_nothing(api: Api) -> None:
    wrong = run(
        api,
        "set_allocator_settings",
        params={"settings": "roundup_power2_divisions:1,max_split_size_mb:7"},
    )
    unknown = run(api, "set_allocator_settings", params={"settings": "no_such_option:1"})
    same = run(api, "set_allocator_settings", params={"settings": "max_split_size_mb:64"})
    as_asked = run(api, "user.grow", params={"kib": 40 << 10})
    real = run(api, "set_allocator_settings", params={"settings": "roundup_power2_divisions:2"})
    rounded = run(api, "user.grow", params={"kib": 40 << 10})
    back = run(
        api, "set_allocator_settings", params={"settings": "roundup_power2_divisions:default"}
    )
    once_more = run(api, "user.grow", params={"kib": 40 << 10})
    assert wrong["state"] == "refused"
    assert (
        "max_split_size_mb: expected at least 20, got '7'. Nothing was changed." in wrong["message"]
    )
    assert unknown["state"] == "refused"
    assert "expandable_segments, max_split_size_mb" in unknown["message"]
    assert same["before"]["roundup_power2_divisions"] == "default"
    assert real["after"]["roundup_power2_divisions"] == "2"
    assert real["after"]["max_split_size_mb"] == "64"
    sizes = [each["result"]["bytes"] for each in (as_asked, rounded, once_more)]
    assert sizes == [40 * MIB, 48 * MIB, 40 * MIB]
    assert back["after"]["allocator_settings"] == "max_split_size_mb:64"


@pytest.mark.usefixtures("job")
def test_a_cap_is_the_devices_limit_from_then_on(api: Api) -> None:
    receipt = run(api, "set_memory_fraction", params={"fraction": 0.5})
    too_low = run(api, "set_memory_fraction", params={"fraction": 0.001})
    capped = api.wait_for_run(
        RUN,
        lambda run: run["ranks"][0]["devices"][0].get("limit_bytes") == 512 * MIB,
        "the limit",
    )
    assert receipt["after"]["limit_bytes"] == 512 * MIB
    assert receipt["before"]["limit_bytes"] == 1024 * MIB
    assert too_low["state"] == "refused"
    assert "are allocated: the next new segment would fail" in too_low["message"]
    assert capped["ranks"][0]["devices"][0]["total_bytes"] == 1024 * MIB


@pytest.mark.usefixtures("job")
def test_what_empty_cache_cannot_return_has_a_holder_and_the_promise_is_kept(api: Api) -> None:
    dry = run(api, "empty_cache", dry_run=True)
    real = run(api, "empty_cache")
    assert dry["returned_bytes"] == real["returned_bytes"]
    held = {each["what"]: each for each in dry["result"]["held_by"]}
    assert sum(each["bytes"] for each in held.values()) == dry["result"]["stranded_bytes"]
    # Two of three pieces of 4 MiB are free, in a segment of 20 MiB that the third one holds.
    other = held["tensors that are no parameter, gradient, optimizer state or buffer"]
    assert other["bytes"] >= 16 * MIB
    assert "parameters" in " ".join(held)
    assert real["result"]["held_by"] == dry["result"]["held_by"]
    assert "stayed stranded in" in real["message"]
    started = run(api, "history_start", params={"mode": "state"})
    assert started["state"] == "done"
    # Into the same segment: it is named by its line now, beside what was there before.
    run(api, "user.grow", params={"kib": 3 << 10})
    told = {each["what"] for each in run(api, "empty_cache", dry_run=True)["result"]["held_by"]}
    assert "grow" in [what.rpartition(" ")[2] for what in told if "commanded.py:" in what]
    assert "tensors that are no parameter, gradient, optimizer state or buffer" in told


@pytest.mark.usefixtures("job")
def test_the_pace_the_collector_and_libraries(api: Api) -> None:
    rate = run(api, "set_sampling_rate", params={"rate_hz": 3})
    wanted = api.wait_for_run(
        RUN,
        lambda run: _status(run).get("account", {}).get("wanted_rate_hz") == 3,
        "the status with the wanted rate",
    )
    thresholds = run(
        api, "set_gc_thresholds", params={"thresholds": [900, 11, 12], "enabled": False}
    )
    plans = run(api, "clear_plan_caches")
    workspaces = run(api, "clear_cublas_workspaces")
    assert rate["before"]["wanted_rate_hz"] == 10
    assert rate["after"] == {"wanted_rate_hz": 3, "rate_hz": 3}
    assert _status(wanted)["rate_hz"] == 3
    assert thresholds["after"] == {"enabled": False, "thresholds": [900, 11, 12]}
    for nothing in (plans, workspaces):
        assert nothing["state"] == "failed"
        assert nothing["message"] == "an emulated device has no libraries of CUDA"


def _status(run: dict[str, Any]) -> dict[str, Any]:
    status: dict[str, Any] = run["ranks"][0].get("status") or {}
    return status
