"""Which processes train, and which only serve those: workers, launchers, helpers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from vramscope.processes.attached import THREAD_MARK
from vramscope.processes.command_line import front_end_of, is_python_name, program_of
from vramscope.processes.process import Process
from vramscope.processes.python_program import PythonProgram

Role = Literal["training", "launcher", "worker", "other"]

_DATA_WORKER: Final = "pt_data_worker"
_ELASTIC_AGENT: Final = "pt_elastic"
# Threads that torch starts where a model is trained: backward on a device, process groups.
_TRAINING_THREADS: Final = ("pt_autograd", "pt_nccl", "pt_gloo", "gloo_")
_LAUNCHERS: Final = frozenset(
    {
        "accelerate.commands.launch",
        "deepspeed",
        "deepspeed.launcher.launch",
        "deepspeed.launcher.runner",
        "torch.distributed.launch",
        "torch.distributed.run",
        "torchrun",
    }
)
_CHILD_CODE: Final = (
    "from multiprocessing.spawn import ",
    "from multiprocessing.forkserver import ",
    "from multiprocessing.resource_tracker import ",
    "from joblib.externals.loky",
)
_CHILD_OPTION: Final = "--multiprocessing-fork"
_COMPILE_WORKER: Final = "torch/_inductor/compile_worker/__main__.py"


class Observed(Struct, frozen=True, kw_only=True):
    """What is known of one Python process.

    Args:
        process: who it is.
        program: its Python and torch.
        gpu_bytes: memory on GPUs; 0 for none, ``None`` if not known.
        holds_gpu: whether NVML lists it.
        threads: names of its threads.
    """

    process: Process
    program: PythonProgram
    gpu_bytes: int | None = None
    holds_gpu: bool = False
    threads: frozenset[str] = frozenset()


class Part(Struct, frozen=True):
    """The part that a process plays.

    Args:
        role: what it does.
        parent: the process that a worker works for, 0 if it has ended.
        is_child: whether it is a child that ``multiprocessing`` made.
    """

    role: Role
    parent: int | None = None
    is_child: bool = False


def assign_roles(all_observed: Mapping[int, Observed]) -> dict[int, Part]:
    """Tell the part that each process plays.

    A child that ``multiprocessing`` or a fork made is a worker, unless it shows that it trains:
    it holds memory of a GPU, or has threads that torch starts for training. A parent that holds
    none, and whose children train, has only started them. A child that is a program of its own
    is judged by itself.

    Args:
        all_observed: every Python process, by its number.
    """
    children = {pid for pid, each in all_observed.items() if _is_child(each, all_observed)}
    parts: dict[int, Part] = {}
    for pid, each in all_observed.items():
        is_child = pid in children
        if is_child and not _shows_training(each):
            parent = _first_above(each, all_observed, children)
            parts[pid] = Part("worker", parent, is_child)
        else:
            parts[pid] = Part(_own_role(each), None, is_child)
    for pid in _starters(all_observed, parts):
        parts[pid] = Part("launcher", None, parts[pid].is_child)
    return parts


def _own_role(each: Observed) -> Role:
    if is_launcher(each.process):
        return "launcher"
    is_watched = THREAD_MARK in each.threads
    trains = is_watched or each.holds_gpu or each.program.torch is not None
    return "training" if trains else "other"


def is_launcher(process: Process) -> bool:
    """Whether it starts training processes and trains nothing itself: torchrun and its like."""
    if process.name == _ELASTIC_AGENT:
        return True
    if not process.argv or not is_python_name(process.argv[0]):
        return False
    program = program_of(process.argv)
    name = front_end_of(program.name)
    return name in _LAUNCHERS or (name == "accelerate" and program.arguments[:1] == ("launch",))


def _is_child(each: Observed, all_observed: Mapping[int, Observed]) -> bool:
    process = each.process
    if process.name == _DATA_WORKER or _CHILD_OPTION in process.argv:
        return True
    program = program_of(process.argv)
    if program.name == "-c" and any(word.startswith(_CHILD_CODE) for word in process.argv[1:4]):
        return True
    if os.path.normpath(program.name).endswith(_COMPILE_WORKER):
        return True
    parent = all_observed.get(process.ppid)
    # Only a fork has its memory laid out as its parent: a program that is started anew has not.
    return (
        parent is not None
        and bool(each.program.layout)
        and each.program.layout == parent.program.layout
        and process.exe == parent.process.exe
    )


def _shows_training(each: Observed) -> bool:
    if each.process.name == _DATA_WORKER:
        return False
    return each.holds_gpu or any(name.startswith(_TRAINING_THREADS) for name in each.threads)


def _first_above(each: Observed, all_observed: Mapping[int, Observed], children: set[int]) -> int:
    """The nearest process above that no ``multiprocessing`` made, or that trains itself."""
    above = all_observed.get(each.process.ppid)
    while above is not None:
        if above.process.pid not in children or _shows_training(above):
            return above.process.pid
        above = all_observed.get(above.process.ppid)
    return 0


def _starters(all_observed: Mapping[int, Observed], parts: Mapping[int, Part]) -> list[int]:
    """Parents of ranks that they made themselves, as ``torch.multiprocessing.spawn`` does."""
    of_ranks = {
        all_observed[pid].process.ppid
        for pid, part in parts.items()
        if part.role == "training" and part.is_child
    }
    return [
        pid
        for pid in of_ranks & parts.keys()
        if parts[pid].role == "training" and not _shows_training(all_observed[pid])
    ]
