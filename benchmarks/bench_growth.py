"""Times what it costs to find out what grows: looks, searches, and the recording beside them.

python benchmarks/bench_growth.py [--step-ms 25] [--objects 200000]

A job that keeps one tensor a step is asked again and again, on the GPU if there is one, else on an
emulated device. Its steps are compared with those between the questions.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from vramscope.collectors.self_cost import SelfCost
from vramscope.devices.caching_allocator import initialised_cuda, read_snapshot
from vramscope.growth.growth_watch import GrowthWatch, LookedAt
from vramscope.growth.recording import StackRecording
from vramscope.history.history import History
from vramscope.history.pytorch_history import PytorchHistory
from vramscope.history.snapshot_folder import SnapshotFolder
from vramscope_protocol.commands import ExplainGrowthParams, Receipt

QUESTIONS = 4
BETWEEN = 30
"""Steps between two questions."""


class Cuda:
    """The first CUDA device. Has the interface of ``LookedAt``, and of the history's device."""

    def memory_stats(self) -> Mapping[str, Any] | None:
        stats: Mapping[str, Any] = initialised_cuda()._cuda_memoryStats(0)
        return stats

    def segments(self) -> list[dict[str, Any]]:
        segments: list[dict[str, Any]] = read_snapshot(initialised_cuda())["segments"]
        return segments

    def storage(self, tensor: Any) -> tuple[int, int] | None:
        if not tensor.is_cuda:
            return None
        found = tensor.untyped_storage()
        return found.data_ptr(), found.nbytes()

    def busy_reason(self) -> str | None:
        return None


class Job:
    """Trains, keeps a tensor of each step, and takes about as long for each as is wanted."""

    def __init__(self, place: str, step_ms: float) -> None:
        self.place = place
        width = 1024 if place == "cuda" else 64
        layers = [torch.nn.Linear(width, width) for _ in range(12)]
        self.model = torch.nn.Sequential(*layers).to(place)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.batch = torch.ones(32, width, device=place)
        self.kept: list[Any] = []
        self.step_ms = step_ms

    def step(self) -> None:
        """One step; what it does not take itself it sleeps, as a job that waits for its data."""
        start = time.perf_counter()
        self.model(self.batch).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.kept.append(torch.zeros(128, 128, device=self.place))
        if self.place == "cuda":
            torch.cuda.synchronize()
        time.sleep(max(0.0, self.step_ms / 1e3 - (time.perf_counter() - start)))


def timed(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return (clock() - start) * 1e3


def ask(job: Job, device: LookedAt, history: History) -> tuple[Receipt, list[float], list[float]]:
    """One question; its receipt, the time of each step, and the CPU time spent at each boundary."""
    watch = GrowthWatch(
        device, StackRecording(history), ExplainGrowthParams(), "bench", lambda spent_ns: None
    )
    steps: list[float] = []
    held: list[float] = []
    while True:
        job.kept[:-2000] = []
        steps.append(timed(job.step))
        # CPU time: on a busy machine the other is that of everybody.
        held.append(timed(lambda: watch.poll(len(steps)), time.thread_time))
        receipt = watch.poll_on_agent_thread()
        if receipt is not None:
            return receipt, steps, held


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--step-ms", type=float, default=25.0)
    parser.add_argument("--objects", type=int, default=200_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    objects = [{"number": number} for number in range(options.objects)]
    is_cuda = torch.cuda.is_available()
    emulation = None
    if not is_cuda:
        from vramscope.emulation import start_emulation

        emulation = start_emulation(8 << 30)
    device: Any = Cuda() if emulation is None else emulation.device
    job = Job("cuda" if is_cuda else "cpu", options.step_ms)
    folder = SnapshotFolder(tempfile.mkdtemp(), "bench", 1 << 20)
    pytorch = PytorchHistory(emulated=emulation is not None)
    history = History(pytorch, device, folder, lambda shipment: None, SelfCost(lambda: 0))
    for _ in range(10):
        job.step()
    print(f"{len(gc.get_objects()):,} objects; {'cuda' if is_cuda else 'emulated'}")
    for number in range(QUESTIONS):
        alone = [timed(job.step) for _ in range(BETWEEN)]
        receipt, steps, held = ask(job, device, history)
        assert receipt.state == "done", receipt.message
        holders = [group["holders"][0]["chain"][:2] for group in receipt.result["groups"]]
        window_ms = sum(steps) + sum(held)
        print(
            f"question {number}: {len(steps):3} steps, {window_ms / 1e3:5.2f} s; at boundaries "
            f"{sum(held):6.1f} ms = {sum(held) / window_ms:.2%} (longest {max(held):5.1f} ms); "
            f"step {statistics.median(alone):6.2f} -> {statistics.median(steps):6.2f} ms; {holders}"
        )
    if emulation is not None:
        emulation.stop()
    assert len(objects) == options.objects


if __name__ == "__main__":
    main()
