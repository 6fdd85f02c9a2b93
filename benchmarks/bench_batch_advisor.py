"""Holds the advice on the batch size against bisection, for each model of tests/support/jobs.

python benchmarks/bench_batch_advisor.py [--models conv ... | --all] [--capacity-mib 512]

On an emulated device. Each model trains some steps with two small sizes, of which two are recorded;
then the server is asked. The true maximum is the largest size with which a new training fits into
what the head-room leaves; beside it stands that of the whole device. The advised size has to train
30 steps on the whole device. A model takes one to three minutes of a core; without options there is
one, so that `make bench` stays short.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.batch_trial import Trial
from tests.support.job_process import Api
from tests.support.server_process import ServerProcess

PLAN = "8x8,16x40"
STEPS = 30
HEAD_ROOM = 0.05
MODELS = (
    *("transformer", "conv", "unet", "checkpointed", "sgd"),
    *("lengths", "amp", "accumulated", "attention", "conv-amp"),
)
TOKEN = "bench"


def measured(api: Api, model: str, capacity_mib: float) -> tuple[str, bool]:
    """A row of the table, and whether the advice held."""
    whole = ("--emulate", f"--capacity={capacity_mib}MiB")
    less = ("--emulate", f"--capacity={capacity_mib * (1 - HEAD_ROOM):.1f}MiB")
    trial = Trial(model, whole)
    begun_s = time.monotonic()
    plain = trial.advised(api, PLAN)["advice"]
    advice: dict[str, Any] = trial.advised(api, PLAN, 10)["advice"]
    size = advice["batch_size"]
    steps = STEPS if model == "lengths" else 4
    largest = trial.outcome(f"search:{steps}:{size}", *less)["largest"]
    at_all = trial.outcome(f"search:{steps}:{size}", *whole)["largest"]
    runs = trial.outcome(f"{size}x{STEPS}", *whole)["failed_at"] is None
    runs_plain = trial.outcome(f"{plain['batch_size']}x{STEPS}", *whole)["failed_at"] is None
    share, share_plain = size / largest, plain["batch_size"] / largest
    row = (
        f"| {model} | {size} ({advice['low']} to {advice['high']}) | {largest} | {at_all} "
        f"| {share:.1%} | {'yes' if runs else 'NO'} | {advice['confidence']} "
        f"| {plain['batch_size']} | {share_plain:.1%} | {'yes' if runs_plain else 'NO'} "
        f"| {time.monotonic() - begun_s:.0f} s |"
    )
    return row, runs and share >= 0.95


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", default=["transformer"])
    parser.add_argument("--all", action="store_const", dest="models", const=list(MODELS))
    parser.add_argument("--capacity-mib", type=float, default=512)
    options = parser.parse_args()
    print(
        "| model | advised | largest with 5 % head-room | largest at all | share | ran 30 steps "
        "| confidence | without a recording | share | ran | took |"
    )
    print("|---" * 11 + "|")
    held = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        ServerProcess(Path(folder), token=TOKEN) as server,
    ):
        api = Api(server.url, TOKEN)
        for model in options.models:
            row, is_held = measured(api, model, options.capacity_mib)
            held += is_held
            print(row, flush=True)
    print(f"{held} of {len(options.models)} ran, and were at least 95 % of the largest")


if __name__ == "__main__":
    main()
