"""Who this process is: run, rank, host, and the stream that names one life of one process."""

from __future__ import annotations

import getpass
import hashlib
import os
import platform
import socket
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from vramscope._version import __version__

_RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_WORLD_SIZE = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_LOCAL_RANK = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")


class Identity(Struct, frozen=True):
    """What names this process towards the server."""

    run_id: str
    run_name: str
    stream: str
    rank: int
    world_size: int
    local_rank: int
    host: str
    pid: int
    user: str
    script: str
    started_ns: int
    software: dict[str, str]


def identify(
    name: str | None = None,
    launch_id: str | None = None,
    script: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Identity:
    """Find out who this process is.

    Args:
        name: name of the run; the script's name without its ending by default.
        launch_id: what is the same on all ranks of one launch and differs between launches.
        script: script that runs; found through ``__main__`` by default. Only its last part is
            kept: paths and arguments may hold secrets.
        environ: variables of the launcher; the process's own by default.
    """
    variables = os.environ if environ is None else environ
    script_name = os.path.basename(script if script is not None else _main_script())
    run_name = name or os.path.splitext(script_name)[0] or "python"
    world_size = max(1, _number(variables, _world_names(variables, _WORLD_SIZE), 1))
    launch = launch_id or launch_from(variables) or uuid.uuid4().hex
    # A file name may hold bytes that are no text.
    key = f"{run_name}\0{launch}".encode("utf-8", "backslashreplace")
    return Identity(
        run_id=hashlib.sha256(key).hexdigest()[:12],
        run_name=run_name,
        stream=uuid.uuid4().hex,
        rank=_number(variables, _world_names(variables, _RANK), 0),
        world_size=world_size,
        local_rank=_number(variables, _world_names(variables, _LOCAL_RANK), 0),
        host=socket.gethostname(),
        pid=os.getpid(),
        user=_user(),
        script=script_name,
        started_ns=time.time_ns(),
        software={"vramscope": __version__, "python": platform.python_version()},
    )


def launch_from(variables: Mapping[str, str]) -> str | None:
    """What this launch has in common on all ranks, by the launcher's own variables."""
    master = f"{variables.get('MASTER_ADDR', '')}:{variables.get('MASTER_PORT', '')}"
    elastic = variables.get("TORCHELASTIC_RUN_ID")
    if elastic is not None:
        # torchrun without --rdzv-id says "none" and uses one fixed port: two launches after
        # each other would be one run. Its own process tells them apart, where there is only one.
        nodes = variables.get("GROUP_WORLD_SIZE", "1")
        launcher = _parent_life() if elastic == "none" and nodes == "1" else ""
        return f"torchrun:{elastic}:{master}:{variables.get('SLURM_JOB_ID', '')}:{launcher}"
    if _is_slurm_step(variables):
        return f"slurm:{variables.get('SLURM_JOB_ID', '')}:{variables['SLURM_STEP_ID']}"
    if "PMIX_NAMESPACE" in variables:
        return f"pmix:{variables['PMIX_NAMESPACE']}"
    if _number(variables, ("WORLD_SIZE",), 1) > 1 and "MASTER_ADDR" in variables:
        return f"env:{master}"
    return None


def _is_slurm_step(variables: Mapping[str, str]) -> bool:
    # A shell inside an allocation has these variables too, with one task: what is started there
    # by hand, one after the other, is not one run.
    return "SLURM_STEP_ID" in variables and _number(variables, ("SLURM_STEP_NUM_TASKS",), 1) > 1


def _world_names(variables: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, ...]:
    if _is_slurm_step(variables):
        return names
    return tuple(name for name in names if not name.startswith("SLURM_"))


def _number(variables: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    for name in names:
        text = variables.get(name, "")
        if text.isascii() and text.isdigit():
            return int(text)
    return default


def _parent_life() -> str:
    """Parent process and its start time, which no other process of this host ever had."""
    parent = os.getppid()
    try:
        stat = Path(f"/proc/{parent}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return str(parent)
    # The name may hold spaces and brackets: fields are counted from the last bracket on.
    fields = stat.rpartition(")")[2].split()
    return f"{parent}.{fields[19]}" if len(fields) > 19 else str(parent)


def _main_script() -> str:
    main = sys.modules.get("__main__")
    return getattr(main, "__file__", None) or ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a number that no user database knows.
        return str(os.getuid())
