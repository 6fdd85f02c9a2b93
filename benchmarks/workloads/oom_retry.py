"""Training close to its limit: retries, and out-of-memory errors that the job survives.

A batch that does not fit is trained in halves, as many training scripts do.
"""

from __future__ import annotations

import random

import torch
from torch import nn

from benchmarks.trace_recorder import TraceRecorder
from benchmarks.workloads.language_model import LanguageModel, text

STEPS = 24
TOO_LONG_EVERY = 8


def run(recorder: TraceRecorder) -> None:
    """Train, one row a step."""
    torch.manual_seed(0)
    rng = random.Random(0)
    model = LanguageModel(layers=3).to(recorder.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    for step in range(1, STEPS + 1):
        lengths = (900, 1000) if step % TOO_LONG_EVERY == 0 else (64, 420)
        tokens = text(rng, recorder.device, batch=8, lengths=lengths)
        if not _fits(model, tokens):
            model.zero_grad(set_to_none=True)
            for half in tokens.chunk(4):
                _fits(model, half)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        recorder.end_step()


def _fits(model: nn.Module, tokens: torch.Tensor) -> bool:
    try:
        model(tokens).backward()
    except torch.cuda.OutOfMemoryError:
        return False
    return True
