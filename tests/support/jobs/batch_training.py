"""Trains one of the models of batch_models.py with batch sizes of the caller's choice.

    batch_training.py MODEL SIZExSTEPS[,SIZExSTEPS ...] [--device=cuda] [--scale=1] [--cap-mib=0]

Ends with a line of JSON. Running out of memory is no failure of the job: it says at which size.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from batch_models import make

import vramscope

MIB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("plan")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--cap-mib", type=int, default=0)
    parser.add_argument("--wait", action="store_true", help="end when standard input ends")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.cap_mib:
        total_bytes = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(asked.cap_mib * MIB / total_bytes)
    training = make(asked.model, asked.device, asked.scale)
    done = 0
    failed_at = None
    for part in asked.plan.split(","):
        size, steps = (int(each) for each in part.split("x"))
        try:
            for _ in range(steps):
                vramscope.log(batch_size=size)
                training.step(size)
                done += 1
        except torch.OutOfMemoryError:
            failed_at = size
            break
    print(json.dumps({"steps": done, "failed_at": failed_at}), flush=True)
    if asked.wait:
        sys.stdin.read()


if __name__ == "__main__":
    main()
