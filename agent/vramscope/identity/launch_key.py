"""What all ranks of one launch have in common, and no other launch has, with nobody asked.

| launcher | on one machine | on several |
|---|---|---|
| torchrun, accelerate | its process | its id, or the master's address; the batch job |
| RANK, MASTER_ADDR | the process that started them | the master's address; the batch job |
| srun, flux, Open MPI | number of job and step | the same |
| other MPI | its process | the batch job; the master's address |
| PyTorch alone | the process that started them | the address of their store |
"""

from __future__ import annotations

import getpass
import multiprocessing
import os
import re
from collections.abc import Mapping
from typing import Final

from vramscope.identity.launchers import Placement, is_numbered_later, number
from vramscope.identity.process_group import ProcessGroup
from vramscope.identity.process_life import (
    Ancestor,
    ancestors,
    child_count,
    life_of,
    own_life,
)
from vramscope.identity.scheduler_job import scheduler_job

_LOOPBACK: Final = re.compile(r"localhost|127\.\d+\.\d+\.\d+|::1|\[::1\]")
_ONE_NODE: Final = re.compile(r"1(:1)?")
_NODES_OPTION: Final = re.compile(r"--(?:nnodes|num[-_]machines)(?:=(.*))?")
_SHELL: Final = re.compile(r"-?(?:.*/)?(?:ba|da|z|fi|k|tc|c)?sh")
# Together they differ between a launcher and what it starts, also where launchers are nested.
_OWN_NUMBER: Final = (
    *("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"),
    *("PMI_RANK", "PMI_SIZE", "PMI_FD", "PMI_PORT"),
)


def launch_key(variables: Mapping[str, str], placement: Placement) -> str | None:
    """The key of this launch, by its launcher; ``None`` where the launcher gives none.

    Args:
        variables: environment that the launcher gave to this process.
        placement: what it says of the process.
    """
    if placement.launcher in ("torchrun", "accelerate") and "TORCHELASTIC_RUN_ID" in variables:
        return _elastic_key(variables)
    if placement.launcher == "srun":
        job, step = variables.get("SLURM_JOB_ID"), variables.get("SLURM_STEP_ID")
        return f"slurm:{job}:{step}" if job and step else None
    if placement.launcher == "flux":
        return f"flux:{variables['FLUX_JOB_ID']}" if variables.get("FLUX_JOB_ID") else None
    if placement.launcher == "mpirun":
        return _mpi_key(variables, placement)
    # Ranks that have their numbers from PyTorch may have set the address themselves.
    is_numbered = placement.launcher not in ("", "spawn", "distributed")
    if is_numbered and placement.world_size > 1 and variables.get("MASTER_ADDR"):
        return _address_key(variables, placement)
    return None


def process_key(pid: int | None = None) -> str:
    """Key of what one process does alone, or together with the processes that it starts.

    Args:
        pid: that process; this one by default.
    """
    return f"process:{own_life() if pid is None else life_of(pid)}"


def group_key(variables: Mapping[str, str], group: ProcessGroup) -> str | None:
    """Key of ranks that only ``torch.distributed`` knows of; ``None`` if they left no trace.

    Args:
        variables: environment that was given to this process.
        group: the process group that is up.
    """
    starter = _starter(variables)
    host = group.store.rpartition(":")[0]
    if starter is not None and (_LOOPBACK.fullmatch(host) or _has_all_ranks(starter, group)):
        return process_key(starter)
    if group.store:
        return f"store:{group.store}:{scheduler_job(variables)}:{user_name()}"
    return process_key(starter) if starter is not None else None


def parent_pid() -> int | None:
    """The process that started this one through :mod:`multiprocessing`, if one did."""
    parent = multiprocessing.parent_process()
    return parent.pid if parent is not None else None


def user_name() -> str:
    """Who runs this process; by number where no user database knows."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _starter(variables: Mapping[str, str]) -> int | None:
    """The process that started the ranks of this machine, where no launcher did."""
    parent = parent_pid()
    if parent is not None:
        return parent
    if is_numbered_later(variables):
        return os.getppid()
    # The first rank starts the others, and has put the number of them there itself.
    return os.getpid() if is_numbered_later(os.environ) else None


def _has_all_ranks(starter: int, group: ProcessGroup) -> bool:
    """Whether one process has, in itself and its children, as many as there are ranks."""
    return child_count(starter) + 1 >= group.world_size


def _elastic_key(variables: Mapping[str, str]) -> str:
    # Neither the port nor the address of the master: they change when the ranks start again.
    elastic, job = variables["TORCHELASTIC_RUN_ID"], scheduler_job(variables)
    launcher = _launcher(variables)
    groups = number(variables, "GROUP_WORLD_SIZE") or 1
    if elastic == "none":
        # Without an id, torchrun meets at a fixed address, and two launches after each other at
        # the same one. Its own process tells them apart, where there is only one.
        if groups == 1 and launcher is not None:
            return f"torchrun:{elastic}:{job}:{life_of(launcher.pid)}"
        return f"torchrun:{elastic}:{job}:{_master(variables)}:{user_name()}"
    # An id may be copied from one command line to the next, and an elastic job may have a single
    # machine for a while: only what can never have two is told apart by its process.
    if groups == 1 and launcher is not None and _has_one_node(launcher.arguments):
        return f"torchrun:{elastic}:{job}:{life_of(launcher.pid)}"
    return f"torchrun:{elastic}:{job}:{user_name()}"


def _mpi_key(variables: Mapping[str, str], placement: Placement) -> str | None:
    job = variables.get("PMIX_NAMESPACE") or variables.get("OMPI_MCA_ess_base_jobid")
    if job:
        return f"mpi:{job}:{scheduler_job(variables)}:{user_name()}"
    if placement.local_size == placement.world_size:
        launcher = _launcher(variables)
        if launcher is not None:
            return f"mpi:{life_of(launcher.pid)}"
    if scheduler_job(variables) or variables.get("MASTER_ADDR"):
        return f"mpi:{scheduler_job(variables)}:{_master(variables)}:{user_name()}"
    return None


def _address_key(variables: Mapping[str, str], placement: Placement) -> str:
    master, life = _master(variables), ""
    on_one_machine = placement.local_size == placement.world_size or _LOOPBACK.fullmatch(
        variables["MASTER_ADDR"]
    )
    if on_one_machine:
        launcher = _launcher(variables)
        # Ranks that are typed into two terminals have no launcher in common.
        if launcher is not None and not _is_prompt(launcher.arguments):
            life = life_of(launcher.pid)
    return f"env:{master}:{scheduler_job(variables)}:{life or user_name()}"


def _master(variables: Mapping[str, str]) -> str:
    return f"{variables.get('MASTER_ADDR', '')}:{variables.get('MASTER_PORT', '')}"


def _launcher(variables: Mapping[str, str]) -> Ancestor | None:
    """The process that gave this one its number: the nearest that does not have it itself.

    Between the two there may be wrappers: a shell script, ``numactl``, ``vramscope run``.
    """
    own = {f"{name}={variables[name]}" for name in _OWN_NUMBER if name in variables}
    return next((found for found in ancestors() if not own <= found.environ), None)


def _has_one_node(arguments: tuple[str, ...]) -> bool:
    for at, argument in enumerate(arguments):
        option = _NODES_OPTION.fullmatch(argument)
        if option is not None:
            nodes = option[1] if option[1] is not None else "".join(arguments[at + 1 : at + 2])
            return _ONE_NODE.fullmatch(nodes) is not None
    return True


def _is_prompt(arguments: tuple[str, ...]) -> bool:
    """Whether a command line is that of a shell that somebody types into."""
    return (
        bool(arguments)
        and _SHELL.fullmatch(arguments[0]) is not None
        and all(argument.startswith("-") for argument in arguments[1:])
        and "-c" not in arguments
    )
