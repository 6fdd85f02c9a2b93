"""Times what it costs to find out what grows: looks, searches, and the recording beside them.

python benchmarks/bench_growth.py [--step-ms 10 20 50] [--objects 200000]

A job that keeps one tensor a step is asked again and again, on the GPU if there is one, else on an
emulated device. Its steps are compared with those before a question and those after it.

Costs are CPU time of the training thread: on a busy machine the other time is that of everybody.
What the job itself takes longer while stacks are recorded is told apart from what is done at step
ends: on an emulated device it is the emulation that takes them.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from vramscope.collectors.self_cost import SelfCost
from vramscope.devices.caching_allocator import initialised_cuda, read_snapshot
from vramscope.growth.growth_watch import GrowthWatch
from vramscope.growth.looks import LookedAt
from vramscope.growth.recording import StackRecording
from vramscope.history.history import History
from vramscope.history.pytorch_history import PytorchHistory
from vramscope.history.snapshot_folder import SnapshotFolder
from vramscope_protocol.commands import Receipt
from vramscope_protocol.parameters import ExplainGrowthParams

QUESTIONS = 4
BESIDE = 30
"""Steps before and after each question."""


@dataclass
class Asked:
    """What one question has cost, in ms."""

    receipt: Receipt
    answered: float
    """From its begin to the end of its last step."""
    window: float
    """The same, with the time after it in which nothing else is asked."""
    held: list[float]
    """CPU time at its begin and at each step end."""
    steps: list[float]
    """CPU time of each step."""
    recorded: int
    """How many of them were recorded."""
    worded: float
    """CPU time of putting the answer into words, on the agent's thread."""


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


def timed(work: Callable[[], object]) -> float:
    """CPU time of this thread, in ms."""
    start = time.thread_time()
    work()
    return (time.thread_time() - start) * 1e3


def ask(job: Job, device: LookedAt, history: History) -> Asked:
    """Ask once what grows, and let the job go on until it is answered."""
    start = time.perf_counter()
    watch: Any = None
    held: list[float] = []
    steps: list[float] = []
    recorded = 0

    def begin() -> None:
        nonlocal watch
        recording = StackRecording(history)
        # As the server asks.
        params = ExplainGrowthParams(looks=4, every=4)
        watch = GrowthWatch(device, recording, params, "bench", lambda _: None)

    held.append(timed(begin))
    while True:
        job.kept[:-2000] = []
        recorded += history.window is not None
        steps.append(timed(job.step))
        held.append(timed(lambda: watch.poll(len(steps))))
        answered = (time.perf_counter() - start) * 1e3
        begun = time.thread_time()
        receipt = watch.poll_on_agent_thread()
        if receipt is not None and receipt.state != "running":
            worded = (time.thread_time() - begun) * 1e3
            while watch.owed_ns(time.perf_counter_ns()):
                job.step()
            window = (time.perf_counter() - start) * 1e3
            return Asked(receipt, answered, window, held, steps, recorded, worded)


def beside(job: Job) -> list[float]:
    """CPU time of steps while nothing is asked."""
    return [timed(job.step) for _ in range(BESIDE)]


def measure(job: Job, device: Any, history: History) -> None:
    """Ask some questions, and print what they cost."""
    before: list[float] = []
    after: list[float] = []
    held = window = 0.0
    for number in range(QUESTIONS):
        before += beside(job)
        asked = ask(job, device, history)
        after += beside(job)
        assert asked.receipt.state == "done", asked.receipt.message
        assert history.window is None
        held += sum(asked.held)
        window += asked.window
        holders = [group["holders"][0]["chain"][:2] for group in asked.receipt.result["groups"]]
        print(
            f"  question {number}: {len(asked.steps):3} steps, {asked.recorded:2} of them recorded,"
            f" {asked.answered / 1e3:5.2f} s, paid back after {asked.window / 1e3:5.2f} s; at"
            f" boundaries {sum(asked.held):5.1f} ms ="
            f" {sum(asked.held) / asked.window:.2%} (longest {max(asked.held):4.1f} ms);"
            f" in words {asked.worded:4.1f} ms; CPU of a recorded step"
            f" {statistics.median(asked.steps[: asked.recorded]):5.2f} ms; {holders}"
        )
    ratio = statistics.median(after) / statistics.median(before)
    print(
        f"steps of {job.step_ms:g} ms: {held / window:.2%} of the windows; CPU of a step"
        f" {statistics.median(before):.2f} ms before, {statistics.median(after):.2f} ms after:"
        f" {ratio:.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--step-ms", type=float, nargs="+", default=[10.0, 20.0, 50.0])
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
    folder = SnapshotFolder(tempfile.mkdtemp(), "bench", 1 << 20)
    pytorch = PytorchHistory(emulated=emulation is not None)
    history = History(pytorch, device, folder, lambda shipment: None, SelfCost(lambda: 0))
    print(f"{len(gc.get_objects()):,} objects; {'cuda' if is_cuda else 'emulated'}")
    for step_ms in options.step_ms:
        job = Job("cuda" if is_cuda else "cpu", step_ms)
        for _ in range(10):
            job.step()
        measure(job, device, history)
    if emulation is not None:
        emulation.stop()
    assert len(objects) == options.objects


if __name__ == "__main__":
    main()
