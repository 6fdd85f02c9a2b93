"""Descriptions of processes, made up for what this machine has none of."""

from __future__ import annotations

from typing import Any

from vramscope.processes.process import Ids, Process


def made_process(pid: int = 41327, **changes: Any) -> Process:
    """A Python process of user 1000 that nothing is special about, with changes."""
    argv = changes.get("argv", ("python", "train.py"))
    usual: dict[str, Any] = {
        "pid": pid,
        "ppid": 1,
        "ns_pid": pid,
        "start_ticks": 1000 + pid,
        "started_ns": 1_700_000_000_000_000_000 + pid * 10_000_000,
        "state": "S",
        "name": "python",
        "uids": Ids(1000, 1000, 1000),
        "gids": Ids(1000, 1000, 1000),
        "command": " ".join(argv),
        "argv": argv,
        "exe": "/usr/bin/python3.11",
        "exe_deleted": False,
        "tracer_pid": 0,
        "tracer_name": "",
        "is_kernel_thread": False,
        "same_pid_namespace": True,
        "same_mount_namespace": True,
        "same_net_namespace": True,
        "same_user_namespace": True,
        "same_root": True,
        "permitted_capabilities": 0,
    }
    return Process(**usual | changes)
