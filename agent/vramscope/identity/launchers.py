"""What the launchers of training jobs tell each process, by the variables that they set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from vramscope.identity.process_life import start_environment


class Launcher(Struct, frozen=True):
    """Names of the variables of one launcher; ``rank`` and ``world_size`` make it known."""

    name: str
    rank: str
    world_size: str
    local_rank: tuple[str, ...] = ()
    local_size: tuple[str, ...] = ()
    node_rank: tuple[str, ...] = ()
    restart_count: str = ""
    max_restarts: str = ""


class Placement(Struct, frozen=True):
    """Where a process stands among the ranks of its job, as one launcher tells it."""

    launcher: str
    rank: int
    world_size: int
    local_rank: int
    local_size: int | None = None
    """Ranks on this machine."""
    node_rank: int | None = None
    restart_count: int = 0
    max_restarts: int = 0


# The variables that torchrun made common. Others set the first five of them as well.
_RANK: Final = {
    "rank": "RANK",
    "world_size": "WORLD_SIZE",
    "local_rank": ("LOCAL_RANK",),
    "local_size": ("LOCAL_WORLD_SIZE", "LOCAL_SIZE"),
    "node_rank": ("GROUP_RANK", "NODE_RANK", "CROSS_RANK"),
}
_ELASTIC: Final = Launcher(
    "torchrun",
    **_RANK,  # type: ignore[arg-type]  # each value has its own type
    restart_count="TORCHELASTIC_RESTART_COUNT",
    max_restarts="TORCHELASTIC_MAX_RESTARTS",
)
_PLAIN: Final = Launcher("env", **_RANK)  # type: ignore[arg-type]  # as above

# mpirun inside a SLURM job starts its own helpers with srun, so that ranks see SLURM's variables
# of those helpers: MPI's own come first.
_OTHERS: Final = (
    Launcher(
        "mpirun",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        ("OMPI_COMM_WORLD_LOCAL_RANK",),
        ("OMPI_COMM_WORLD_LOCAL_SIZE",),
    ),
    Launcher(
        "mpirun",
        "MV2_COMM_WORLD_RANK",
        "MV2_COMM_WORLD_SIZE",
        ("MV2_COMM_WORLD_LOCAL_RANK",),
        ("MV2_COMM_WORLD_LOCAL_SIZE",),
    ),
    Launcher(
        "srun",
        "SLURM_PROCID",
        "SLURM_STEP_NUM_TASKS",
        ("SLURM_LOCALID",),
        (),
        ("SLURM_NODEID",),
        restart_count="SLURM_RESTART_COUNT",
    ),
    Launcher("flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", ("FLUX_TASK_LOCAL_ID",)),
    # MPICH and Intel MPI.
    Launcher("mpirun", "PMI_RANK", "PMI_SIZE", ("MPI_LOCALRANKID",), ("MPI_LOCALNRANKS",)),
)


_NAMES: Final = frozenset(
    name
    for launcher in (_ELASTIC, _PLAIN, *_OTHERS)
    for name in (
        *(launcher.rank, launcher.world_size, *launcher.local_rank, *launcher.local_size),
        *(*launcher.node_rank, "MASTER_ADDR", "MASTER_PORT"),
    )
)


def placement_from(variables: Mapping[str, str]) -> Placement | None:
    """What the launcher says; ``None`` if no launcher numbered this process.

    A step of one SLURM task is none: it may be a shell in which jobs are started by hand.

    Args:
        variables: as :func:`given_variables` has them.
    """
    plain = _read(_PLAIN, variables)
    if "TORCHELASTIC_RUN_ID" in variables and plain is not None:
        return _read(_ELASTIC, variables, _elastic_name(variables))
    if plain is not None:
        return _read(_PLAIN, variables, _plain_name(variables))
    for launcher in _OTHERS:
        found = _read(launcher, variables)
        if found is not None and (launcher.name != "srun" or found.world_size > 1):
            return found
    return None


def given_variables() -> dict[str, str]:
    """The environment, with the variables of launchers as they were when the process started.

    Scripts and frameworks set the same ones themselves, each at another time and some in one rank
    only. The numbers that they give are seen when PyTorch has them.
    """
    variables = dict(os.environ)
    first = start_environment()
    for name in _NAMES if first is not None else ():
        variables.pop(name, None)
        if first is not None and name in first:
            variables[name] = first[name]
    return variables


def is_numbered_later(variables: Mapping[str, str]) -> bool:
    """Whether the process is one of several, and only PyTorch will know which.

    Lightning starts the other ranks of a machine so: they know how many there are.
    """
    return placement_from(variables) is None and (number(variables, "WORLD_SIZE") or 1) > 1


def number(variables: Mapping[str, str], *names: str) -> int | None:
    """The first of the variables that is a number."""
    for name in names:
        text = variables.get(name, "")
        if text.isascii() and text.isdigit():
            return int(text)
    return None


def _read(
    launcher: Launcher, variables: Mapping[str, str], name: str | None = None
) -> Placement | None:
    rank = number(variables, launcher.rank)
    if rank is None:
        return None
    world_size = number(variables, launcher.world_size)
    if world_size is None and launcher is _PLAIN:
        world_size = rank + 1  # whoever numbers ranks by hand may leave out how many there are
    if world_size is None or rank >= world_size:
        return None
    return Placement(
        launcher=name or launcher.name,
        rank=rank,
        world_size=world_size,
        local_rank=number(variables, *launcher.local_rank) or 0,
        local_size=number(variables, *launcher.local_size),
        node_rank=number(variables, *launcher.node_rank),
        restart_count=number(variables, launcher.restart_count) or 0,
        max_restarts=number(variables, launcher.max_restarts) or 0,
    )


def _elastic_name(variables: Mapping[str, str]) -> str:
    return "accelerate" if "ACCELERATE_MIXED_PRECISION" in variables else "torchrun"


def _plain_name(variables: Mapping[str, str]) -> str:
    if "RAY_JOB_ID" in variables:
        return "ray"
    if "ACCELERATE_MIXED_PRECISION" in variables:
        return "accelerate"
    # No other launcher sets these two beside RANK.
    if "CROSS_RANK" in variables and "LOCAL_SIZE" in variables:
        return "deepspeed"
    return "env"
