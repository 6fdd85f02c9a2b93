"""Runs one workload: ``python -m tests.cases.workloads NAME [STEPS]``."""

from __future__ import annotations

import sys

import torch

from tests.cases.workloads.catalogue import WORKLOADS
from tests.cases.workloads.growing import GROWING

if __name__ == "__main__":
    torch.manual_seed(0)
    name = sys.argv[1]
    job = GROWING[name].job if name in GROWING else WORKLOADS[name]
    job(int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
