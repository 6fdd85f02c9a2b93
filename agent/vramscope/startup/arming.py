"""Waits for the first sign that this process trains, and attaches then.

The ``.pth`` file in the environment's packages calls :func:`arm` in every Python process whose
environment has one of two variables: ``VRAMSCOPE_ATTACH``, set by a person, or that in which a
watched process leaves its options to the processes that it starts.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from vramscope import current
from vramscope.guard import guarded
from vramscope.identity.process_group_watcher import ProcessGroupWatcher
from vramscope.startup.command_line import read_command_line
from vramscope.steps.import_watcher import ImportWatcher
from vramscope.steps.torch_hooks import OPTIMIZER_MODULE

SWITCH: Final = "VRAMSCOPE_ATTACH"
_OFF: Final = frozenset({"", "0", "false", "no", "off"})

Sign = Literal["torch", "optimizer", "group"]
"""What to wait for: torch is imported, an optimizer is made, or a process group comes up."""


def sign_to_wait_for(arguments: Sequence[str], environ: Mapping[str, str]) -> Sign | None:
    """What would show that a process trains; ``None`` for one that never does.

    Args:
        arguments: its command line, the interpreter first.
        environ: its environment.
    """
    line = read_command_line(arguments)
    if line.is_launcher or line.is_tool:
        return None
    if environ.get(SWITCH, "").strip().lower() in _OFF:
        return "group"
    if line.is_worker:
        # A DataLoader's workers, a pool's, a rank of mp.spawn: only the last has a group.
        return "group"
    # ``python -c`` is what installers and monitors ask about torch with.
    return "optimizer" if line.kind in ("command", "input") else "torch"


def arm(arguments: Sequence[str] | None = None) -> None:
    """Attach this process at the first sign that it trains.

    Args:
        arguments: its command line; by default as the interpreter has it.
    """
    sign = sign_to_wait_for(sys.orig_argv if arguments is None else arguments, os.environ)
    if sign is None or _armed:
        return
    watchers: list[ProcessGroupWatcher | ImportWatcher] = []

    def attach() -> None:
        for watcher in watchers:
            watcher.remove()
        if current.session() is None:
            _attach()

    watchers.append(ProcessGroupWatcher(attach))
    if sign == "torch":
        watchers.append(ImportWatcher("torch", attach))
    elif sign == "optimizer":
        watchers.append(ImportWatcher(OPTIMIZER_MODULE, lambda: _at_first_optimizer(attach)))
    _armed.extend(watchers)
    for watcher in watchers:
        watcher.install()


_armed: list[ProcessGroupWatcher | ImportWatcher] = []


def _attach() -> None:
    # Here and not above: until there is a sign, a process pays only for waiting.
    from vramscope.identity.inheritance import inherited
    from vramscope.session import Session, open_session, open_session_with

    parent = inherited()

    def open_it() -> Session:
        if parent is None:
            return open_session()
        return open_session_with(parent.config, parent=parent)

    session = current.session_or(open_it)
    session.bequeath()


def _at_first_optimizer(attach: Callable[[], None]) -> None:
    """Call back as soon as an optimizer is being made."""
    optimizer: Any = sys.modules[OPTIMIZER_MODULE].__dict__["Optimizer"]
    original = optimizer.__init__

    @functools.wraps(original)
    def make_optimizer(*args: Any, **options: Any) -> None:
        if optimizer.__init__ is make_optimizer:
            optimizer.__init__ = original
            with guarded("attach"):
                attach()
        original(*args, **options)

    optimizer.__init__ = make_optimizer
