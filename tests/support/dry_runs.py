"""Holds the promise of the dry run of ``empty_cache`` against what it does, state by state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.job_process import REPOSITORY, Api, finish, start, watched_command
from tests.support.server_thread import TOKEN, server_thread
from vramscope_server.settings import Limits

JOB = REPOSITORY / "tests/support/jobs/any_state.py"
LIMITS = Limits(command_burst=100_000)
RUN = "states"


def check_states(folder: Path, device: str, seeds: range, settings: str = "") -> None:
    """Go from state to state; in each the promise is kept to the byte.

    Args:
        folder: for the server.
        device: ``cuda``, or ``cpu`` for an emulated one.
        seeds: one for each state.
        settings: of the allocator.
    """
    options = ["--emulate"] if device == "cpu" else []
    with server_thread(folder, LIMITS) as server:
        api = Api(server.url, TOKEN)
        command = watched_command(JOB, device, url=api.url, token=TOKEN, run=RUN, options=options)
        job = start(command, PYTORCH_CUDA_ALLOC_CONF=settings)
        try:
            api.wait_for_run(RUN, lambda run: (run["step"] or 0) > 5, "some steps", timeout_s=120)
            told = [_kept_promise(api, seed) for seed in seeds]
            job.terminate()
            code, output, errors = finish(job)
        finally:
            job.kill()
            job.wait()
    assert code == 0, output + errors
    # Not all states are of one kind.
    assert sum(each["returned_bytes"] > 0 for each in told) > len(told) / 3
    assert sum(each["result"]["stranded_bytes"] > 0 for each in told) > len(told) / 3
    if device == "cuda":
        assert any(each["result"]["private_pool_bytes"] for each in told)


def _kept_promise(api: Api, seed: int) -> dict[str, Any]:
    begin = _run(api, "user.state", params={"seed": seed})["result"]
    dry = _run(api, "empty_cache", dry_run=True)
    real = _run(api, "empty_cache")
    end = _run(api, "user.reserved")["result"]
    dropped_bytes = begin["reserved_bytes"] - end["reserved_bytes"]
    told = f"state {seed}: {begin}, {dry}, {real}"
    assert dry["returned_bytes"] == real["returned_bytes"] == dropped_bytes, told
    after = [receipt["after"]["reserved_bytes"] for receipt in (dry, real)]
    assert after == [end["reserved_bytes"]] * 2, told
    stayed = sum(each["bytes"] for each in dry["result"]["held_by"])
    assert stayed == dry["result"]["stranded_bytes"] == real["result"]["stranded_bytes"], told
    return dry


def _run(api: Api, name: str, **body: Any) -> dict[str, Any]:
    receipt: dict[str, Any] = api.command(RUN, name, **body)["receipts"]["0"]
    assert receipt["state"] == "done", receipt
    return receipt
