"""The training processes of this machine, and whether they can be attached to."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from vramscope.collectors.nvml_library import NvmlLibrary
from vramscope.injection.errors import NotInjectable
from vramscope.injection.interpreter import FIRST_WITH_REMOTE_EXEC, find_interpreter
from vramscope.notices import Notices
from vramscope.processes.attached import THREAD_MARK
from vramscope.processes.command_line import program_of
from vramscope.processes.gpu_memory import GpuUse, read_gpu_uses, total_bytes
from vramscope.processes.obstacle import Obstacle
from vramscope.processes.permission import is_in_container, why_not_reachable
from vramscope.processes.proc_files import NoSuchProcess, process_ids, read_thread_names
from vramscope.processes.process import Process, read_process
from vramscope.processes.python_program import (
    PythonProgram,
    may_run_python,
    read_python_program,
)
from vramscope.processes.roles import Observed, Part, Role, assign_roles

_OTHER_WAYS: Final = (
    "start the job with vramscope run, or with VRAMSCOPE_ATTACH=1 in its environment"
)


class TrainingProcess(Struct, frozen=True, kw_only=True):
    """One process as ``vramscope ps`` lists it.

    Args:
        pid: its number here.
        ns_pid: the number that it has itself, inside of its container.
        user: who runs it.
        command: up to the script, secrets left out.
        python: version, such as "3.12"; ``None`` if not known.
        torch: version; "" if it is loaded in an unknown version; ``None`` if it is not, or this
            user may not know.
        gpu_bytes: memory on all GPUs; ``None`` if not known.
        gpus: where that memory is.
        attachable: whether nothing known is in the way of attaching.
        why_not: what is, in words.
        fix: what would help, in words.
        obstacle: what is in the way, as one word.
        attached: whether an agent watches it now.
        workers: how many processes work for it: workers of data loaders and their like.
        started_ns: when it started, in nanoseconds since the epoch.
        start_ticks: the same as the kernel counts it: with the pid names this process.
        container: whether it lies in a container.
        role: what it does; "training" unless all processes were asked for.
        parent: of a worker, the process that it works for.
        readable: whether this user may see what it does; if not, little of this is known.
    """

    pid: int
    ns_pid: int
    user: str
    command: str
    python: str | None
    torch: str | None
    gpu_bytes: int | None
    gpus: list[GpuUse]
    attachable: bool
    why_not: str | None
    fix: str | None
    obstacle: str | None
    attached: bool
    workers: int
    started_ns: int
    start_ticks: int
    container: bool
    role: Role
    parent: int | None
    readable: bool


def training_processes(*, everything: bool = False) -> list[TrainingProcess]:
    """Find the training processes of this machine, oldest first. Takes no rights and stops nothing.

    A Python process trains if torch is loaded in it, if it holds memory of a GPU, or if an agent
    watches it already. Its workers are counted, not listed; launchers such as torchrun are not
    listed either.

    Args:
        everything: list every Python process, with its role.
    """
    library = NvmlLibrary(Notices())
    try:
        gpu_uses = read_gpu_uses(library)
    finally:
        library.close()
    return list_processes(_observe_all(gpu_uses), gpu_uses or {}, everything=everything)


def list_processes(
    observed: Mapping[int, Observed],
    gpu_uses: Mapping[int, Sequence[GpuUse]],
    *,
    everything: bool = False,
) -> list[TrainingProcess]:
    """Make the list of what was observed, as :func:`training_processes` describes it."""
    parts = assign_roles(observed)
    workers = Counter(part.parent for part in parts.values() if part.parent)
    listed = [
        _listed(each, parts[pid], observed, gpu_uses, workers[pid])
        for pid, each in observed.items()
        if everything or parts[pid].role == "training"
    ]
    return sorted(listed, key=lambda each: (each.start_ticks, each.pid))


def _observe_all(gpu_uses: Mapping[int, list[GpuUse]] | None) -> dict[int, Observed]:
    observed: dict[int, Observed] = {}
    sees_every_process = not is_in_container()
    for pid in process_ids():
        if pid == os.getpid():
            continue
        try:
            if not may_run_python(pid):
                continue
            process = read_process(pid)
            program = read_python_program(process)
            if program is None or process.state in "ZX":
                continue
            threads = frozenset(read_thread_names(pid).values())
        except NoSuchProcess:
            continue
        held = None if gpu_uses is None else gpu_uses.get(pid, [])
        observed[pid] = Observed(
            process=process,
            program=program,
            gpu_bytes=gpu_bytes(held, program, sees_every_process=sees_every_process),
            holds_gpu=bool(held) and (sees_every_process or program.uses_nvidia is True),
            threads=threads,
        )
    return observed


def gpu_bytes(
    held: list[GpuUse] | None, program: PythonProgram, *, sees_every_process: bool
) -> int | None:
    """Memory of GPUs that a process holds; ``None`` if that is not known.

    Args:
        held: what NVML lists under the process's number; ``None`` without NVML.
        program: tells whether it uses a GPU at all.
        sees_every_process: whether the numbers of NVML are sure to be ours. In a container they
            may be those of the host, and another process may have the same number here.
    """
    if held is None:
        return None
    if held and (sees_every_process or program.uses_nvidia):
        return total_bytes(held)
    return 0 if program.uses_nvidia is False else None


def _listed(
    each: Observed,
    part: Part,
    observed: Mapping[int, Observed],
    gpu_uses: Mapping[int, Sequence[GpuUse]],
    workers: int,
) -> TrainingProcess:
    process, program = each.process, each.program
    obstacle = _obstacle(process, program, part)
    return TrainingProcess(
        pid=process.pid,
        ns_pid=process.ns_pid,
        user=process.user,
        command=_command(process, part, observed),
        python=_python_text(program),
        torch=program.torch,
        gpu_bytes=each.gpu_bytes,
        gpus=list(gpu_uses.get(process.pid, ())) if each.holds_gpu else [],
        attachable=obstacle is None,
        why_not=None if obstacle is None else obstacle.reason,
        fix=None if obstacle is None else obstacle.fix,
        obstacle=None if obstacle is None else obstacle.kind,
        attached=THREAD_MARK in each.threads,
        workers=workers,
        started_ns=process.started_ns,
        start_ticks=process.start_ticks,
        container=process.container,
        role=part.role,
        parent=part.parent or None,
        readable=program.uses_nvidia is not None,
    )


def _obstacle(process: Process, program: PythonProgram, part: Part) -> Obstacle | None:
    if part.role == "worker":
        works_for = f"of process {part.parent}" if part.parent else "whose parent has ended"
        fix = f"attach to process {part.parent}" if part.parent else ""
        return Obstacle("worker", f"it is a worker {works_for}", fix)
    if part.role == "launcher":
        return Obstacle("launcher", "it only starts processes that train", "attach to those")
    remote = program.version is not None and program.version >= FIRST_WITH_REMOTE_EXEC
    rights = why_not_reachable(process, method="remote_exec" if remote else "pending_call")
    if rights is not None:
        return rights
    try:
        find_interpreter(process.pid)
    except NotInjectable as error:
        return Obstacle(error.kind, error.reason, _OTHER_WAYS)
    return None


def _command(process: Process, part: Part, observed: Mapping[int, Observed]) -> str:
    """A child that ``multiprocessing`` has made says nothing of the script: its parent does."""
    if not part.is_child or program_of(process.argv).name != "-c":
        return process.command
    parent = observed.get(process.ppid)
    if parent is None:
        return f"{process.name} (child of a process that has ended)"
    return f"{parent.process.command} (child)"


def _python_text(program: PythonProgram) -> str | None:
    if program.version is None:
        return None
    return ".".join(map(str, program.version)) + "t" * program.is_free_threaded
