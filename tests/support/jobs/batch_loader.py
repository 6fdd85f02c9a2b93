"""Trains one of the models of batch_models.py from a DataLoader, until it is told to end.

batch_loader.py MODEL BATCH
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch.utils.data import DataLoader

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.support.jobs.batch_models import make

SAMPLES = 100_000


def main(model: str, batch: int) -> None:
    torch.set_num_threads(1)
    training = make(model, "cpu", 1)
    loader = DataLoader(range(SAMPLES), batch_size=batch)
    while True:
        for samples in loader:
            training.step(len(samples))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
