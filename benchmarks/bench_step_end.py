"""What the agent does at the end of a step and in its threads, piece by piece, while a job trains.

A job of short steps trains under the whole agent, with a server to talk to. First what the agent's
threads take, and how often they wake up; then its hooks of a step; then each piece of them and of a
turn of the sampling thread, timed where it runs, with caches as cold as the job leaves them. All of
it is CPU time. On the GPU, or on a device that is pretended.
Usage: ``bench_step_end.py [--device cuda|pretended] [--seconds S]``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

import vramscope
from benchmarks.bench_agent_overhead import launch_bound_step, training_step
from benchmarks.pieces import Piece, Pieces
from tests.support.server_process import ServerProcess
from vramscope.collectors.allocator import AllocatorCounters, StatsPoller
from vramscope.collectors.allocator_settings import AllocatorSettings
from vramscope.collectors.garbage_collection import GarbageCollection
from vramscope.collectors.host import HostCollector
from vramscope.collectors.nvml import NvmlMonitor
from vramscope.collectors.self_cost import CpuMeter, SelfCost
from vramscope.commands.queue import CommandQueue
from vramscope.devices.cuda import CudaDevice
from vramscope.devices.further_devices import FurtherDevices
from vramscope.history.part import HistoryPart
from vramscope.memory_map.memory_map import MemoryMap
from vramscope.oom.part import OomPart
from vramscope.outbox.outbox import Outbox
from vramscope.peaks.cuda_peaks import CudaPeaks
from vramscope.peaks.peak_meter import PeakMeter
from vramscope.peaks.step_parts import StepParts
from vramscope.peaks.step_peaks import StepPeaks
from vramscope.peaks.user_peaks import UserPeaks
from vramscope.phases.phases import Phases
from vramscope.sampling.rows import RowBuffer
from vramscope.sampling.sampler import THREAD_NAME, Sampler
from vramscope.sampling.status import StatusReport
from vramscope.steps.at_boundary import AtBoundary
from vramscope.steps.backward_hook import BackwardHook
from vramscope.steps.fetches import Fetches
from vramscope.steps.step_rows import StepRows
from vramscope.steps.tracker import StepTracker
from vramscope.tensors.tensor_account import TensorAccount

HOOK = "the hook after the optimizer"
TURN = "a turn, what is not below"
EMPTY = "empty, at the same rate"
WARM_S = 3.0
STEP_S = 0.010
HOOKS = (
    Piece(StepTracker, "_after_optimizer_step", HOOK),
    Piece(StepTracker, "_before_optimizer_step", "the hook before the optimizer"),
    Piece(BackwardHook, "_begins", "a backward begins"),
    Piece(BackwardHook, "_ended", "a backward ends"),
)
AT_STEP_END = (
    *HOOKS,
    Piece(StepTracker, "_end_step", "the end of a step, what is not below"),
    Piece(AtBoundary, "__call__", "what is asked for at step ends"),
    Piece(FurtherDevices, "at_boundary", "which device trains"),
    Piece(StepRows, "append", "the row"),
    Piece(RowBuffer, "append", "the row into the buffer"),
    Piece(AllocatorCounters, "read", "counters of the row"),
    Piece(StepPeaks, "end_step", "the peaks of the step"),
    Piece(StepParts, "step_ended", "parts: a step ended"),
    Piece(StepParts, "_boundary", "parts: a border"),
    Piece(PeakMeter, "mark", "accounts of peaks"),
    Piece(CudaPeaks, "take", "whether peaks may be reset"),
    Piece(UserPeaks, "_take", "the job's view of its peaks"),
    Piece(TensorAccount, "take", "categories"),
    Piece(TensorAccount, "saw_optimizer", "categories: an optimizer"),
    Piece(Fetches, "optimizer_stepped", "waits for data"),
    Piece(CommandQueue, "run_at_boundary", "commands"),
    Piece(MemoryMap, "at_boundary", "map"),
    Piece(Phases, "code", "phases"),
    Piece(CpuMeter, "__init__", "the CPU clock"),
    Piece(CpuMeter, "end", "the CPU clock"),
)
IN_A_TURN = (
    Piece(Sampler, "tick", TURN),
    Piece(Sampler, "_sample", "a sample"),
    Piece(Sampler, "_field_set", "columns"),
    Piece(HistoryPart, "look", "rules and reports"),
    Piece(OomPart, "look", "rules and reports"),
    Piece(AllocatorSettings, "read", "settings"),
    Piece(SelfCost, "cpu_ns", "own cost"),
    Piece(RowBuffer, "append", "the row into the buffer"),
    Piece(StatsPoller, "poll", "counters: whether to read"),
    Piece(CudaDevice, "memory_stats", "counters: read"),
    Piece(AllocatorCounters, "read", "counters: their values"),
    Piece(CudaDevice, "device_memory", "driver: which device"),
    Piece(CudaDevice, "refresh_info", "driver: which device"),
    Piece(NvmlMonitor, "read", "driver: read"),
    Piece(HostCollector, "read", "host"),
    Piece(GarbageCollection, "read", "garbage collection"),
    Piece(FurtherDevices, "read", "further devices"),
    Piece(MemoryMap, "tick", "map"),
    Piece(Phases, "poll", "phases"),
    Piece(RowBuffer, "flush", "rows: batches"),
    Piece(Outbox, "put", "rows: encoded and queued"),
    Piece(Outbox, "spill", "rows: spool"),
    Piece(StepTracker, "poll", "hooks looked after"),
    Piece(StatusReport, "make", "status"),
)


class Spent(NamedTuple):
    """What a thread has used so far."""

    cpu_ns: int
    wake_ups: int


def short_step(width: int = 128, layers: int = 20) -> Callable[[], object]:
    """A step of many short operations on one core, each 10 ms after the one before."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers)))
    batch = torch.randn(8, width)
    train_once = training_step(model, batch)
    due_s = time.perf_counter()

    def step() -> None:
        nonlocal due_s
        train_once()
        due_s = max(due_s + STEP_S, time.perf_counter() - STEP_S)
        # Not a sleep: the caches are to be as cold as after a step that had work for all of it.
        with torch.no_grad():
            while time.perf_counter() < due_s:
                model(batch)

    return step


def wake_up_for_ever(rate_hz: float) -> None:
    """What a thread takes that does nothing else."""
    lock = threading.Lock()
    lock.acquire()
    while True:
        lock.acquire(timeout=1 / rate_hz)


def threads() -> dict[str, Spent]:
    """Of the agent's threads by name, of that which reads the connection, and of the empty one."""
    found: dict[str, Spent] = {}
    for thread in threading.enumerate():
        is_ours = thread.name.startswith("vramscope-") or thread.name == EMPTY
        if is_ours or "recv_events" in thread.name:
            name = "vramscope-reader" if "recv_events" in thread.name else thread.name
            task = Path(f"/proc/self/task/{thread.native_id}")
            cpu_ns = int((task / "schedstat").read_text().split()[0])
            status = (task / "status").read_text()
            wake_ups = int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
            found[name] = Spent(cpu_ns, wake_ups)
    return found


def train(step: Callable[[], object], seconds: float) -> float:
    """Steps for so long; milliseconds of one, as the median would not see the dear ones."""
    begin_s, count = time.perf_counter(), 0
    while (elapsed_s := time.perf_counter() - begin_s) < seconds:
        step()
        count += 1
    return 1e3 * elapsed_s / count


def thread_table(step: Callable[[], object], seconds: float) -> None:
    """Print what the threads take while the job trains."""
    before, begin_s = threads(), time.perf_counter()
    train(step, seconds)
    elapsed_s = time.perf_counter() - begin_s
    after = threads()
    print(f"{'thread':28}{'% of a core':>12}{'wake-ups/s':>12}")
    total = 0.0
    for name, spent in after.items():
        earlier = before.get(name, Spent(0, 0))
        share = 100 * (spent.cpu_ns - earlier.cpu_ns) / 1e9 / elapsed_s
        total += 0 if name == EMPTY else share
        wake_ups = (spent.wake_ups - earlier.wake_ups) / elapsed_s
        print(f"  {name:26}{share:12.3f}{wake_ups:12.1f}")
    print(f"  {'the agent together':26}{total:12.3f}")


def follow(at_step_end: Pieces, in_a_turn: Pieces | None = None) -> None:
    """Time what this thread does, and the sampling thread."""
    at_step_end.follow(threading.get_ident())
    (sampler,) = (each for each in threading.enumerate() if each.name == THREAD_NAME)
    if in_a_turn is not None:
        in_a_turn.follow(sampler.ident)


def measure(step: Callable[[], object], server: ServerProcess, options: Any) -> None:
    """Print all tables."""
    agent = {"run": "step end", "rate_hz": options.rate, "cost_budget": 1.0}
    with Pieces(HOOKS, HOOK) as hooks:
        vramscope.attach(server.url, server.token, **agent)
        follow(hooks)
        train(step, WARM_S)
        thread_table(step, options.seconds)
        hooks.is_on = True
        train(step, options.seconds)
        vramscope.detach()
    print(f"{'all hooks of a step, us':46}{'median':>9}{'mean':>9}")
    print("\n".join(hooks.table()))
    # Of what both call, the wrapper that comes last passes on to the first.
    with Pieces(AT_STEP_END, HOOK) as at_step_end, Pieces(IN_A_TURN, TURN) as in_a_turn:
        vramscope.attach(server.url, server.token, **agent)
        follow(at_step_end, in_a_turn)
        train(step, WARM_S)
        for pieces in (at_step_end, in_a_turn):
            pieces.is_on = True
            train(step, options.seconds)
            pieces.is_on = False
        vramscope.detach()
    for title, pieces in (("at a step", at_step_end), ("in a turn", in_a_turn)):
        print(f"{title + ', each with a clock around it, us':46}{'median':>9}{'mean':>9}")
        print("\n".join(pieces.table()))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    is_there = torch.cuda.is_available()
    parser.add_argument(
        "--device", choices=("cuda", "pretended"), default="cuda" if is_there else "pretended"
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="of each of four parts")
    parser.add_argument("--rate", type=float, default=10.0)
    options = parser.parse_args()
    if options.device == "cuda":
        step = launch_bound_step("cuda")
    else:
        from benchmarks.pretended_cuda import PretendedCuda

        PretendedCuda()
        step = short_step()
    train(step, 1.0)
    print(f"torch {torch.__version__} on {options.device}, {train(step, 2.0):.2f} ms a step")
    threading.Thread(target=wake_up_for_ever, args=(options.rate,), name=EMPTY, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder, ServerProcess(Path(folder)) as server:
        measure(step, server, options)


if __name__ == "__main__":
    main()
