"""Work on several streams: tensors cross between them, and frees wait for the streams in use.

Needs a CUDA device.
"""

from __future__ import annotations

import random
from collections import deque

import torch

from benchmarks.trace_recorder import TraceRecorder
from benchmarks.workloads.random_memory import random_memory

STEPS = 30
SIDE_STREAMS = 3
BUSY_CYCLES = 1_000_000  # about half a millisecond: longer than the host needs to go on


def run(recorder: TraceRecorder) -> None:
    """Compute, one row a step."""
    torch.manual_seed(0)
    rng = random.Random(0)
    main = torch.cuda.current_stream()
    streams = [torch.cuda.Stream() for _ in range(SIDE_STREAMS)]
    weights = [torch.randn(512, 512, device="cuda") for _ in streams]
    kept: deque[torch.Tensor] = deque(maxlen=5)
    for step in range(STEPS):
        batch = torch.randn(rng.randrange(16, 4096), 512, device="cuda")
        results = []
        for stream, weight in zip(streams, weights, strict=True):
            stream.wait_stream(main)
            results.append(_on_side_stream(stream, batch, weight, rng))
        del batch  # while the side streams are busy with it
        scratch = [random_memory(rng) for _ in range(8)]
        for stream in streams if step % 3 else streams[:1]:
            main.wait_stream(stream)
        for result in results:
            result.record_stream(main)
        kept.append(torch.stack([result.sum() for result in results]))
        if step % 4 == 0:
            kept.append(results[0])
        rng.shuffle(scratch)
        while scratch:
            tensor = scratch.pop()
            for stream in rng.sample(streams, rng.randrange(3)):
                tensor.record_stream(stream)
            del tensor
        del results, result
        if step % 2:
            torch.cuda.synchronize()
        if step == STEPS // 2:
            torch.cuda.empty_cache()
        recorder.end_step()


def _on_side_stream(
    stream: torch.cuda.Stream, batch: torch.Tensor, weight: torch.Tensor, rng: random.Random
) -> torch.Tensor:
    """Several operations on a stream over a batch of another; the result lives on the stream."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(BUSY_CYCLES)
        batch.record_stream(stream)
        hidden = (batch @ weight).relu()
        own = [random_memory(rng) for _ in range(3)]
        hidden = hidden * hidden.sigmoid()
        own.append(hidden[:, :256].clone())
        return torch.cat((hidden, own.pop()), dim=1)
