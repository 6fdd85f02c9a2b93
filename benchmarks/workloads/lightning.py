"""A Lightning run: an LSTM classifier in 16-bit mixed precision with a validation each epoch.

Needs lightning or pytorch_lightning.
"""

from __future__ import annotations

import logging
import random
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.trace_recorder import TraceRecorder

pl: Any = import_module("lightning.pytorch" if find_spec("lightning") else "pytorch_lightning")

EPOCHS = 3
BATCHES = 8
WIDTH = 128
CLASSES = 20


class Classifier(pl.LightningModule):  # type: ignore[misc]
    """Convolution, two LSTM layers, and attention pooling over sequences of vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(WIDTH, WIDTH, 5, padding=2)
        self.recurrent = nn.LSTM(WIDTH, WIDTH, num_layers=2, batch_first=True, bidirectional=True)
        self.weight = nn.Linear(2 * WIDTH, 1)
        self.head = nn.Linear(2 * WIDTH, CLASSES)

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        """Logits (batch, CLASSES) of sequences (batch, length, WIDTH)."""
        hidden = self.convolution(sequences.transpose(1, 2)).relu().transpose(1, 2)
        hidden, _state = self.recurrent(hidden)
        pooled = (self.weight(hidden).softmax(dim=1) * hidden).sum(dim=1)
        return self.head(pooled)

    def training_step(self, batch: Any, _index: int) -> torch.Tensor:
        """Loss of one batch."""
        sequences, labels = batch
        return functional.cross_entropy(self(sequences), labels)

    def validation_step(self, batch: Any, _index: int) -> None:
        """Log the loss of one batch."""
        self.log("loss", self.training_step(batch, 0))

    def configure_optimizers(self) -> Any:
        """Adam with a schedule."""
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


def run(recorder: TraceRecorder) -> None:
    """Train, one row a batch."""
    warnings.filterwarnings("ignore")  # about the number of workers
    logging.getLogger(pl.__name__).setLevel(logging.ERROR)
    pl.seed_everything(0, verbose=False)
    trainer = pl.Trainer(
        accelerator="gpu" if recorder.records else "cpu",
        devices=1,
        max_epochs=EPOCHS,
        precision="16-mixed" if recorder.records else "bf16-mixed",
        accumulate_grad_batches=2,
        gradient_clip_val=1.0,
        callbacks=[_rows(recorder)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), _loader(BATCHES, seed=1), _loader(3, seed=2))


def _loader(batches: int, *, seed: int) -> Any:
    """Batches of one length each, as bucketing makes them."""
    rng = random.Random(seed)
    data = [
        (
            torch.randn(32, rng.randrange(32, 256), WIDTH),
            torch.tensor([rng.randrange(CLASSES) for _ in range(32)]),
        )
        for _ in range(batches)
    ]
    return torch.utils.data.DataLoader(data, batch_size=None)


def _rows(recorder: TraceRecorder) -> Any:
    class Rows(pl.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, *_args: Any) -> None:
            recorder.end_step()

    return Rows()
