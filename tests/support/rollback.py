"""Changes the batch size of a job to one that does not fit, and to one that does."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.job_process import REPOSITORY, Api, finish, start, watched_command
from tests.support.server_process import ServerProcess

JOB = REPOSITORY / "tests/support/jobs/runs_out_resized.py"
RUN = "rolled-back"
BEFORE, TOO_LARGE, FITTING = 8, 256, 16


def check_rollback(folder: Path, device: str, cap_mib: int, sample_kib: int) -> None:
    """What does not fit is taken back after its first step, and training goes on.

    Args:
        folder: for the server.
        device: ``cuda``, or ``cpu`` for an emulated one.
        cap_mib: what the job allows itself.
        sample_kib: size of one sample; a step needs some of them for each.
    """
    options = ["--emulate", f"--capacity={2 * cap_mib}MiB"] if device == "cpu" else []
    arguments = [device, str(cap_mib), str(sample_kib)]
    with ServerProcess(folder) as server:
        api = Api(server.url, server.token)
        command = watched_command(
            JOB, *arguments, url=api.url, token=api.token, run=RUN, options=options
        )
        job = start(command, OMP_NUM_THREADS="1")
        try:
            _wait_for_steps(api, 20)
            params = {"batch_size": TOO_LARGE, "accumulation": 1, "change_global_batch": True}
            ran_out = api.command(RUN, "set_batch_size", params=params)["receipts"]["0"]
            _wait_for_steps(api, ran_out["step"] + 30)
            params["batch_size"] = FITTING
            fits = api.command(RUN, "set_batch_size", params=params)["receipts"]["0"]
            _wait_for_steps(api, fits["step"] + 15)
            job.terminate()
            code, output, errors = finish(job)
        finally:
            job.kill()
            job.wait()
    assert code == 0, output + errors
    assert ran_out["state"] == "failed", ran_out
    assert ran_out["result"] == {"ran_out": True}
    assert "Memory ran out in the first step with it. It was rolled back." in ran_out["message"]
    assert ran_out["before"]["batch_size"] == ran_out["after"]["batch_size"] == BEFORE
    assert fits["state"] == "done", fits
    assert fits["before"]["batch_size"] == BEFORE
    seen = json.loads(output.splitlines()[-1])
    # Some batches of that size had been drawn already; all of them are told by the job alone.
    assert set(seen["ran_out"]) == {TOO_LARGE}
    assert set(seen["last"]) == {FITTING}


def _wait_for_steps(api: Api, count: int) -> None:
    api.wait_for_run(RUN, lambda run: (run["step"] or 0) >= count, f"step {count}", timeout_s=120)
