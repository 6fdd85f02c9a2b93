"""Who this process is: run, rank, host, and the stream that names one attach of one process."""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import sys
import time
import uuid
from collections.abc import Mapping

from msgspec import Struct

from vramscope._version import __version__
from vramscope.identity.inheritance import Inheritance
from vramscope.identity.launch_key import (
    group_key,
    launch_key,
    parent_pid,
    process_key,
    user_name,
)
from vramscope.identity.launchers import (
    Placement,
    given_variables,
    number,
    placement_from,
)
from vramscope.identity.process_group import ProcessGroup
from vramscope.identity.process_life import own_life, short_name, started_ns
from vramscope.identity.scheduler_job import scheduler_job


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
    key: str = ""
    """What all ranks of the launch have in common; the run id is made of it."""
    life: str = ""
    process_started_ns: int = 0
    restart_count: int = 0
    max_restarts: int = 0
    node_rank: int | None = None
    launcher: str = ""
    job: str = ""


def identify(
    name: str | None = None,
    launch_id: str | None = None,
    script: str | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    group: ProcessGroup | None = None,
    parent: Inheritance | None = None,
) -> Identity:
    """Find out who this process is.

    Args:
        name: name of the run; the script's name without its ending by default.
        launch_id: what is the same on all ranks of one launch and differs between launches.
        script: script that runs; found through ``__main__`` by default. Only its last part is
            kept: paths and arguments may hold secrets.
        environ: variables of the launcher; by default those that this process was started with.
        group: what ``torch.distributed`` says, once it is up.
        parent: the run that the watched process which started this one is in, or that this one
            was in before.
    """
    variables = given_variables() if environ is None else environ
    placement = _placement(variables, group)
    key = launch_id or _key(variables, placement, group, parent)
    script_name = os.path.basename(script if script is not None else _main_script())
    run_name = name or _without_ending(script_name) or "python"
    if name is None and parent is not None and parent.key == key:
        run_name = parent.run_name
    # A file name may hold bytes that are no text.
    hashed = hashlib.sha256(f"{run_name}\0{key}".encode("utf-8", "backslashreplace"))
    pid = os.getpid()
    return Identity(
        run_id=hashed.hexdigest()[:12],
        run_name=run_name,
        stream=uuid.uuid4().hex,
        rank=placement.rank,
        world_size=placement.world_size,
        local_rank=placement.local_rank,
        host=socket.gethostname(),
        pid=pid,
        user=user_name(),
        script=script_name,
        started_ns=time.time_ns(),
        software={"vramscope": __version__, "python": platform.python_version()},
        key=key,
        life=short_name(own_life()),
        process_started_ns=started_ns(pid),
        restart_count=placement.restart_count,
        max_restarts=placement.max_restarts,
        node_rank=placement.node_rank,
        launcher=placement.launcher,
        job=scheduler_job(variables),
    )


def _without_ending(script: str) -> str:
    """A module has dots in its name and no ending: ``pkg.train`` stays what it is."""
    stem, ending = os.path.splitext(script)
    return stem if ending in (".py", ".pyc", ".pyw", ".pyz") else script


def _placement(variables: Mapping[str, str], group: ProcessGroup | None) -> Placement:
    placement = placement_from(variables)
    # A launcher's numbers are unique in the whole job. A process group may be one of several, or
    # that of ranks which a single process of the launcher started by itself.
    if placement is not None and (
        placement.world_size > 1 or group is None or group.world_size == 1
    ):
        return placement
    local_rank = number(variables, "LOCAL_RANK")
    if group is None:
        return Placement("", 0, 1, local_rank or 0)
    return Placement(
        launcher="distributed" if parent_pid() is None else "spawn",
        rank=group.rank,
        world_size=group.world_size,
        local_rank=group.rank if local_rank is None or placement is not None else local_rank,
        node_rank=number(variables, "NODE_RANK"),
    )


def _key(
    variables: Mapping[str, str],
    placement: Placement,
    group: ProcessGroup | None,
    parent: Inheritance | None,
) -> str:
    key = launch_key(variables, placement)
    if key is None and group is not None and group.world_size > 1:
        key = group_key(variables, group)
        # The parent may be in a run that its own launcher names.
        if parent is not None and parent.key and key == process_key(parent_pid() or os.getppid()):
            return parent.key
    return key or process_key()


def _main_script() -> str:
    main = sys.modules.get("__main__")
    return getattr(main, "__file__", None) or ""
