"""What exact peaks and parts of steps cost: the step time with and without, and each piece alone.

One process trains; blocks with and without take turns, the order changing from pair to pair, and
each pair is compared with itself. Runs on the GPU if there is one, else on an emulated device.
"Without" is without the agent, or with ``--against-agent`` the agent without peaks, as it always is
on an emulated device. Usage: ``bench_peaks.py [--pairs N] [--block-s S]``, and ``--pieces`` for the
pieces alone.
"""

from __future__ import annotations

import argparse
import copy
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

import vramscope
from benchmarks.bench_agent_overhead import compute_bound_step, launch_bound_step
from tests.support.server_process import ServerProcess
from vramscope.peaks.peak_layout import PeakLayout, fold
from vramscope.peaks.peak_meter import PeakMeter
from vramscope.peaks.split_rate import SplitRate
from vramscope.peaks.step_parts import StepParts
from vramscope.peaks.user_peaks import UserPeaks
from vramscope.steps.backward_hook import BackwardHook
from vramscope_analysis.allocator import CachingAllocator

OPTIONS: dict[str, dict[str, Any]] = {
    "no peaks": {"peaks": False},
    "peaks": {"peaks": True, "parts_budget": 0.0},
    "peaks, parts": {"peaks": True},
}
WARM_S = 0.3
ROUNDS = 2000


def mean_step_s(step: Callable[[], object], block_s: float) -> float:
    """Mean time of a step in a block: a median would not see the few steps that are split."""
    begin_s, count = time.perf_counter(), 0
    while (elapsed_s := time.perf_counter() - begin_s) < block_s:
        step()
        count += 1
    return elapsed_s / count


def median_interval(values: Iterable[float]) -> tuple[float, float, float]:
    """The median, and the interval that covers it with 95 %, from the order of the values."""
    ordered = sorted(values)
    count = len(ordered)
    outside = 0
    weight = 0.0
    while outside < count // 2:
        weight += math.comb(count, outside) / 2**count
        if weight > 0.025:
            break
        outside += 1
    low = max(0, outside - 1)
    return statistics.median(ordered), ordered[low], ordered[count - 1 - low]


class Blocks:
    """Blocks of training with and without the agent, or with and without peaks."""

    def __init__(
        self, server: ServerProcess, block_s: float, *, emulate: bool, against_agent: bool
    ) -> None:
        self._server = server
        self._block_s = block_s
        self._emulate = emulate
        self._base = OPTIONS["no peaks"] if against_agent or emulate else None

    def run(self, step: Callable[[], object], options: dict[str, Any] | None) -> float:
        """Mean step time of one block; ``None`` is without the agent."""
        if options is not None:
            vramscope.attach(
                self._server.url,
                self._server.token,
                run="peaks",
                emulate=self._emulate,
                **options,
            )
        mean_step_s(step, WARM_S)
        mean_s = mean_step_s(step, self._block_s)
        if options is not None:
            vramscope.detach()
        return mean_s

    def compare(self, name: str, step: Callable[[], object], pairs: int) -> None:
        """Print the ratio of step times with some options and without."""
        base = self._base
        ratios: list[float] = []
        for pair in range(pairs):
            first, second = (base, OPTIONS[name]) if pair % 2 else (OPTIONS[name], base)
            one, two = self.run(step, first), self.run(step, second)
            ratios.append(two / one if pair % 2 else one / two)
        middle, low, high = median_interval(ratios)
        print(f"  {name:14} {middle:.5f}  ({low:.5f} to {high:.5f}), {pairs} pairs")


# ------------------------------------------------------------------------------------- pieces


def microseconds(call: Callable[[], object], prepare: Callable[[], object] | None = None) -> float:
    """Median microseconds of a call; ``prepare`` runs before each, and does not count."""
    spent_ns: list[int] = []
    for _ in range(ROUNDS):
        if prepare is not None:
            prepare()
        begin_ns = time.perf_counter_ns()
        call()
        spent_ns.append(time.perf_counter_ns() - begin_ns)
    return statistics.median(spent_ns) / 1e3


def real_counters() -> tuple[Callable[[], Any], Callable[[], object]]:
    """PyTorch's own functions for the current device."""
    c_module: Any = torch._C
    return lambda: c_module._cuda_memoryStats(0), lambda: c_module._cuda_resetPeakMemoryStats(0)


def prepared_counters() -> tuple[Callable[[], Any], Callable[[], object], Callable[[], object]]:
    """Counters that are made before they are asked for: what is timed is ours alone."""
    model = CachingAllocator(1 << 30, version=(2, 11))
    blocks = [model.malloc(1 << size) for size in range(10, 25)]
    model.free(blocks[-1])
    stats = model.memory_stats()
    ready: list[Any] = []
    return lambda: ready.pop(), lambda: None, lambda: ready.append(copy.deepcopy(stats))


class Counters:
    """Peaks of counters that are always at rest. Implements ``PeakCounters``."""

    def __init__(self, peaks: UserPeaks) -> None:
        self._peaks = peaks

    def take(self, *, at_step_end: bool = True, in_backward: bool = False) -> Any:
        """End an interval."""
        del at_step_end, in_backward
        return self._peaks.take()

    def remove(self) -> None:
        """Nothing is wrapped."""

    def forget_after_fork(self) -> None:
        """Nothing is wrapped."""


def hooked_backward_us() -> float:
    """What the hook adds to a backward pass of a step that is not split."""
    parts = StepParts(PeakMeter(Counters(UserPeaks(dict, dict))), SplitRate(1.0), lambda ns: None)
    loss = torch.ones(1, requires_grad=True).sum()

    def backward() -> None:
        torch.autograd.backward(loss, retain_graph=True)

    without: list[float] = []
    hooked: list[float] = []
    for _ in range(15):
        without.append(microseconds(backward))
        hook = BackwardHook(lambda: True, parts.backward_begins, parts.backward_ended)
        hook.install()
        hooked.append(microseconds(backward))
        hook.remove()
    return min(hooked) - min(without)


def pieces() -> None:
    """Print what each piece costs."""
    read, reset, prepare = prepared_counters()
    prepare()
    stats = read()
    layout = PeakLayout(stats)
    one, other = layout.read(stats), layout.read(stats)
    other.fixed[0] += 1
    print("pieces in Python, us:")
    print(f"  {'read all peaks':34}{microseconds(lambda: layout.read(stats)):8.2f}")
    print(f"  {'fold equal ones':34}{microseconds(lambda: fold(one, one)):8.2f}")
    print(f"  {'fold others':34}{microseconds(lambda: fold(one, other)):8.2f}")
    peaks = UserPeaks(read, reset)
    print(f"  {'end an interval':34}{microseconds(peaks.take, prepare):8.2f}")
    meter = PeakMeter(Counters(peaks))
    for _ in range(3):
        meter.open()
    print(f"  {'the same, three accounts open':34}{microseconds(meter.mark, prepare):8.2f}")
    print(f"  {'the view that the job gets':34}{microseconds(peaks.view, prepare):8.2f}")
    print(f"  {'a backward in a step not split':34}{hooked_backward_us():8.2f}")
    if torch.cuda.is_available():
        torch.ones(1 << 20, device="cuda")
        read_real, reset_real = real_counters()
        peaks = UserPeaks(read_real, reset_real)
        print("on the device, us:")
        print(f"  {'read the counters':34}{microseconds(read_real):8.2f}")
        print(f"  {'reset the peaks':34}{microseconds(reset_real):8.2f}")
        print(f"  {'end an interval, all of it':34}{microseconds(peaks.take):8.2f}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--block-s", type=float, default=1.0)
    parser.add_argument("--only", nargs="+", choices=OPTIONS, default=["peaks", "peaks, parts"])
    parser.add_argument("--against-agent", action="store_true", help="what peaks alone add")
    parser.add_argument("--pieces", action="store_true", help="the pieces alone")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"torch {torch.__version__} on {device}, {torch.get_num_threads()} threads")
    pieces()
    if arguments.pieces:
        return
    with tempfile.TemporaryDirectory() as folder, ServerProcess(Path(folder)) as server:
        blocks = Blocks(
            server,
            arguments.block_s,
            emulate=device == "cpu",
            against_agent=arguments.against_agent,
        )
        for kind, make in (("launch", launch_bound_step), ("compute", compute_bound_step)):
            step = make(device)
            mean_step_s(step, 2.0)
            print(f"{kind}-bound, {1e3 * mean_step_s(step, 1.0):.2f} ms a step; ratio (95 %)")
            for name in arguments.only:
                blocks.compare(name, step, arguments.pairs)


if __name__ == "__main__":
    main()
