"""Data-parallel training on the CPU, with ranks that are numbered in whatever way.

ranks.py env                 numbers and addresses from the environment, as torchrun sets them
ranks.py mpi PORT            numbers from Open MPI, written into the variables that torch reads
ranks.py own RANK SIZE PORT  numbers from the command line
ranks.py spawn|fork SIZE PORT   the script starts its ranks itself
--steps N; --die-once RANK: that rank is killed in the middle of its first life; --cuda: a GPU each.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, TensorDataset


def train(steps: int, die_once: int | None, *, use_cuda: bool) -> None:
    """Train in step with the other ranks; batches come from a worker process."""
    torch.set_num_threads(1)
    device = torch.device("cpu")
    if use_cuda:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", dist.get_rank())))
        torch.cuda.set_device(device)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).to(device))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    data = TensorDataset(torch.randn(8 * steps, 64))
    for step, (batch,) in enumerate(DataLoader(data, batch_size=8, num_workers=1)):
        optimizer.zero_grad()
        model(batch.to(device)).square().mean().backward()
        optimizer.step()
        time.sleep(0.02)
        is_first_life = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
        if die_once == dist.get_rank() and is_first_life and step == steps // 2:
            time.sleep(1.0)  # what was measured so far gets through
            os.kill(os.getpid(), signal.SIGKILL)
    dist.destroy_process_group()


def rank_of_own(index: int, options: argparse.Namespace) -> None:
    """What each process runs that the script starts by itself."""
    init_at(options.numbers[-1], index, options.numbers[0], use_cuda=options.cuda)
    train(options.steps, options.die_once, use_cuda=options.cuda)


def init_at(port: int, rank: int, world_size: int, *, use_cuda: bool) -> None:
    """Meet the other ranks at a port of this machine."""
    backend, address = "nccl" if use_cuda else "gloo", f"tcp://127.0.0.1:{port}"
    dist.init_process_group(backend, init_method=address, rank=rank, world_size=world_size)


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("how")
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--die-once", type=int)
    parser.add_argument("--cuda", action="store_true")
    options: Any = parser.parse_args()
    if options.how in ("spawn", "fork"):
        size = options.numbers[0]
        mp.start_processes(rank_of_own, (options,), size, start_method=options.how)
        return
    if options.how == "own":
        rank, size, port = options.numbers
        init_at(port, rank, size, use_cuda=options.cuda)
    elif options.how == "mpi":
        os.environ["RANK"] = os.environ["OMPI_COMM_WORLD_RANK"]
        os.environ["WORLD_SIZE"] = os.environ["OMPI_COMM_WORLD_SIZE"]
        os.environ["MASTER_ADDR"] = "127.0.0.1"
        os.environ["MASTER_PORT"] = str(options.numbers[0])
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("nccl" if options.cuda else "gloo")
    train(options.steps, options.die_once, use_cuda=options.cuda)


if __name__ == "__main__":
    main()
