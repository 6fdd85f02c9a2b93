"""Activation checkpointing with gradient accumulation, and an evaluation now and then.

What evaluation cached is given back before training goes on, as many training scripts do.
"""

from __future__ import annotations

import random

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from benchmarks.trace_recorder import TraceRecorder
from benchmarks.workloads.language_model import LanguageModel, text

STEPS = 8
ACCUMULATED = 2
EVALUATE_EVERY = 4


def run(recorder: TraceRecorder) -> None:
    """Train, one row an optimizer step and one an evaluation."""
    torch.manual_seed(0)
    rng = random.Random(0)
    model = LanguageModel(layers=4, apply=_checkpointed).to(recorder.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(1, STEPS + 1):
        for _ in range(ACCUMULATED):
            loss = model(text(rng, recorder.device, batch=8, lengths=(64, 512)))
            (loss / ACCUMULATED).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        recorder.end_step()
        if step % EVALUATE_EVERY == 0:
            _evaluate(model, rng, recorder)


def _checkpointed(layer: nn.Module, hidden: torch.Tensor) -> torch.Tensor:
    return checkpoint(layer, hidden, use_reentrant=False)


def _evaluate(model: nn.Module, rng: random.Random, recorder: TraceRecorder) -> None:
    model.eval()
    with torch.no_grad():
        losses = [model(text(rng, recorder.device, batch=24, lengths=(64, 512))) for _ in range(3)]
        torch.stack(losses).mean().item()
    model.train()
    recorder.end_step()
    torch.cuda.empty_cache()
