"""Why a process cannot be reached into, and what would help: the kernel's rules in words.

The rules are those of ``ptrace(2)``, section "Ptrace access mode checking", and of Yama
(``Documentation/admin-guide/LSM/Yama.rst``). Writing to the memory of a process, as
``sys.remote_exec`` does, needs the same rights as tracing it, but no tracing.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from vramscope.processes.process import Process, user_name

CAP_SYS_PTRACE: Final = 19
"""Number of the capability in linux/capability.h."""

Method = Literal["pending_call", "remote_exec"]
"""How a process is reached: by tracing it for a moment, or by Python 3.14's own entrance."""


class Obstacle(Struct, frozen=True):
    """What is in the way.

    Args:
        kind: "gone", "kernel", "self", "traced", "uid", "dumpable", "capability",
            "ptrace_scope", "seccomp" or "security_module".
        reason: a clause about the process, such as "it belongs to user ada (uid 1000)".
        fix: what helps, with the exact command or setting; "" if nothing does.
    """

    kind: str
    reason: str
    fix: str


class Facts(Struct, frozen=True, kw_only=True):
    """What the answer depends on, besides the process itself.

    Args:
        opens: whether the kernel lets us open the memory of the process; ``None``: not known.
        pid: our own number.
        uid: our effective user.
        gid: our effective group.
        capabilities: ours that are in effect, as a bit mask.
        is_ptrace_filtered: whether a seccomp filter keeps us from tracing at all.
        ptrace_scope: Yama's setting, ``None`` where there is no Yama.
        is_descendant: whether the process is a child of ours, or a child of one.
        is_dumpable: whether the process lets others of its user look into it; ``None``: not known.
        security_label: its AppArmor profile or SELinux context, "" if it has none.
        in_container: whether we have pids of our own, as in a container.
        in_user_namespace: whether our rights end at the border of a user namespace.
        command: the command line to run again with more rights.
    """

    opens: bool | None
    pid: int
    uid: int
    gid: int
    capabilities: int = 0
    is_ptrace_filtered: bool = False
    ptrace_scope: int | None = None
    is_descendant: bool = False
    is_dumpable: bool | None = None
    security_label: str = ""
    in_container: bool = False
    in_user_namespace: bool = False
    command: str = "vramscope attach PID"

    @property
    def may_trace_all(self) -> bool:
        """Whether we hold the right that overrules users and Yama's scopes 1 and 2."""
        return bool(self.capabilities >> CAP_SYS_PTRACE & 1)


def obstacle(process: Process, facts: Facts, method: Method = "pending_call") -> Obstacle | None:
    """What keeps us from reaching ``process``, ``None`` if nothing does."""
    return (
        _state(process, facts)
        or (_tracing(process, facts) if method == "pending_call" else None)
        or (None if facts.opens else _rights(process, facts) or _refusal(facts))
    )


def _state(process: Process, facts: Facts) -> Obstacle | None:
    if process.state in "ZX":
        return Obstacle("gone", "it has ended and waits for its parent to notice (zombie)", "")
    if process.is_kernel_thread:
        return Obstacle("kernel", "it is a thread of the kernel", "")
    if process.pid == facts.pid:
        return Obstacle("self", "it is this very process", "call vramscope.attach() in it")
    return None


def _tracing(process: Process, facts: Facts) -> Obstacle | None:
    if process.tracer_pid:
        tracer = f"{process.tracer_name or 'process'} (PID {process.tracer_pid})"
        return Obstacle("traced", f"{tracer} is tracing it", f"detach {tracer} from it first")
    if facts.is_ptrace_filtered:
        return Obstacle(
            "seccomp",
            "a seccomp filter of this container forbids ptrace",
            "start the container with --cap-add=SYS_PTRACE, or attach from the host",
        )
    return None


def _rights(process: Process, facts: Facts) -> Obstacle | None:
    """The first rule, in the kernel's order, by which the process is out of reach."""
    if not facts.may_trace_all:
        if set(process.uids) != {facts.uid} or set(process.gids) != {facts.gid}:
            return _other_user(process, facts)
        if facts.is_dumpable is False:
            reason = "it does not let itself be looked into (it is not dumpable)"
            return Obstacle("dumpable", reason, _more_rights(facts))
        if process.permitted_capabilities & ~facts.capabilities:
            reason = "it has capabilities that this user does not have here"
            return Obstacle("capability", reason, _more_rights(facts))
    elif facts.in_user_namespace and facts.opens is False:
        reason = "it is outside of the user namespace in which this user has rights"
        return Obstacle("capability", reason, "attach from the host")
    return _yama(facts)


def _other_user(process: Process, facts: Facts) -> Obstacle:
    if facts.uid == 0:
        reason = f"{_owner(process)}, and root lacks CAP_SYS_PTRACE here"
        return Obstacle("capability", reason, _more_rights(facts))
    ours = f"{user_name(facts.uid)} (uid {facts.uid})"
    if set(process.uids) != {facts.uid}:
        return Obstacle("uid", f"{_owner(process)}, not to {ours}", _more_rights(facts))
    groups = ", ".join(str(gid) for gid in sorted(set(process.gids)))
    reason = f"it runs as group {groups}, not as group {facts.gid}"
    return Obstacle("uid", reason, _more_rights(facts))


def _owner(process: Process) -> str:
    if len(set(process.uids)) > 1:
        numbers = ", ".join(str(uid) for uid in sorted(set(process.uids)))
        return f"it has changed its user (uids {numbers})"
    return f"it belongs to user {process.user} (uid {process.uids.effective})"


def _yama(facts: Facts) -> Obstacle | None:
    scope = facts.ptrace_scope
    setting = f"kernel.yama.ptrace_scope is {scope}"
    if scope == 3:
        return Obstacle(
            "ptrace_scope",
            f"{setting}: nobody may attach until the machine starts anew",
            "start the job with vramscope run, or with VRAMSCOPE_ATTACH=1 in its environment",
        )
    if facts.may_trace_all:
        return None
    if scope == 2:
        reason = f"{setting}: only root may attach"
        return Obstacle("ptrace_scope", reason, _more_rights(facts, scope))
    if scope == 1 and not facts.is_descendant:
        reason = f"{setting}: a process may attach to its own children only"
        return Obstacle("ptrace_scope", reason, _more_rights(facts, scope))
    return None


def _refusal(facts: Facts) -> Obstacle | None:
    """The kernel has said no and none of the known rules says why."""
    if facts.opens is None:
        return None
    label = f" (it runs as {facts.security_label})" if facts.security_label else ""
    return Obstacle(
        "security_module",
        f"a security module such as AppArmor or SELinux refuses{label}",
        "start the job with vramscope run, or with VRAMSCOPE_ATTACH=1 in its environment",
    )


def _more_rights(facts: Facts, scope: int | None = None) -> str:
    if facts.in_container or facts.uid == 0:
        return "start the container with --cap-add=SYS_PTRACE, or attach from the host"
    # Scope 2 cannot be left for good by everybody: the setting is the administrator's choice.
    lower = "" if scope is None else ", or once and for all: sudo sysctl kernel.yama.ptrace_scope=0"
    return f"sudo {facts.command}{lower}"
