"""What watching costs a real training loop: slow-down, CPU time, import, memory.

One process trains; segments with and without the agent take turns, and each pair is compared with
itself, so that a machine that is busy with other things disturbs both sides alike. Runs on the GPU
if there is one, else on the CPU. Usage: ``bench_agent_overhead.py [--pairs N] [--segment-s S]``.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from torch import nn

import vramscope
from tests.support.job_process import child_environment
from tests.support.server_process import ServerProcess


def launch_bound_step(device: str) -> Callable[[], object]:
    """A step of many short kernels: the host sets the pace, and every delay of it shows."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(device)
    return training_step(model, torch.randn(8, 64, 256, device=device))


def compute_bound_step(device: str) -> Callable[[], object]:
    """A step of a few long kernels, as large models have them: the device sets the pace."""
    torch.manual_seed(0)
    width = 8192 if device == "cuda" else 512
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(4))).to(device)
    return training_step(model, torch.randn(4096, width, device=device))


def training_step(model: nn.Module, batch: torch.Tensor) -> Callable[[], object]:
    """Forward, backward, optimizer, and a wait for the loss, as a logging loop has it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step() -> float:
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


STEPS = {"launch": launch_bound_step, "compute": compute_bound_step}


def steps_per_second(step: Callable[[], object], segment_s: float) -> float:
    """Rate of the loop over one segment."""
    begin, count = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - begin) < segment_s:
        step()
        count += 1
    return count / elapsed


def agent_cpu_s() -> float:
    """CPU time that the agent's threads have used so far, as the kernel counts it."""
    total_ns = 0
    for thread in threading.enumerate():
        if thread.name.startswith("vramscope-"):
            schedstat = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text()
            total_ns += int(schedstat.split()[0])
    return total_ns / 1e9


def measure(
    step: Callable[[], object], server: ServerProcess, arguments: argparse.Namespace
) -> None:
    """Print slow-down and cost at each rate, with the cost budget out of the way."""
    for rate_hz in arguments.rates:
        slow_downs: list[float] = []
        costs: list[float] = []
        for _ in range(arguments.pairs):
            without = steps_per_second(step, arguments.segment_s)
            vramscope.attach(
                server.url, server.token, run="overhead", rate_hz=rate_hz, cost_budget=1.0
            )
            steps_per_second(step, 0.3)  # connect and start are not part of watching
            before_s = agent_cpu_s()
            watched = steps_per_second(step, arguments.segment_s)
            costs.append(100 * (agent_cpu_s() - before_s) / arguments.segment_s)
            vramscope.detach()
            slow_downs.append(100 * (1 - watched / without))
        low, middle, high = statistics.quantiles(slow_downs, n=4)
        error = 1.25 * statistics.stdev(slow_downs) / len(slow_downs) ** 0.5
        print(
            f"{rate_hz:5.0f} Hz: slow-down {middle:+.2f} +- {error:.2f} % "
            f"(quartiles {low:+.2f} to {high:+.2f}), "
            f"agent {statistics.median(costs):.3f} % of a core"
        )


def within_budget(step: Callable[[], object], server: ServerProcess) -> None:
    """Print the rate that the default cost budget leaves."""
    run = uuid.uuid4().hex[:8]
    vramscope.attach(server.url, server.token, run=run)
    steps_per_second(step, 12.0)
    status = server.get(f"/api/v1/runs/{run}")["ranks"][0]["status"]
    vramscope.detach()
    print(f"default budget: {status}")


def import_cost() -> None:
    """Print time and memory that importing the agent adds to a process that has torch."""
    code = """
import time, torch, pathlib
def rss_mib():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20
before_mib, begin_s = rss_mib(), time.perf_counter()
import vramscope.agent, vramscope.session, vramscope.transport.transport
import websockets.sync.client, pynvml
took_ms = 1000 * (time.perf_counter() - begin_s)
print(f"import: {took_ms:.0f} ms and {rss_mib() - before_mib:.1f} MiB on top of torch")
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=child_environment())


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--segment-s", type=float, default=1.0)
    parser.add_argument("--rates", type=float, nargs="+", default=[10.0, 100.0])
    parser.add_argument("--only", choices=tuple(STEPS), help="one kind of step, and no more")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = (
        torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} threads"
    )
    print(f"torch {torch.__version__} on {device} ({name})")
    with tempfile.TemporaryDirectory() as folder, ServerProcess(Path(folder)) as server:
        for kind, make in STEPS.items():
            if arguments.only not in (None, kind):
                continue
            step = make(device)
            steps_per_second(step, 2.0)
            print(f"{kind}-bound, {1000 / steps_per_second(step, 1.0):.2f} ms a step")
            measure(step, server, arguments)
            within_budget(step, server)
    if arguments.only is None:
        import_cost()


if __name__ == "__main__":
    main()
