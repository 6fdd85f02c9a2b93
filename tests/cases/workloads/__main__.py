"""Runs one workload: ``python -m tests.cases.workloads NAME [STEPS]``."""

from __future__ import annotations

import sys

import torch

from tests.cases.workloads.catalogue import WORKLOADS

if __name__ == "__main__":
    torch.manual_seed(0)
    WORKLOADS[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
