"""Who this process is, as far as it is known at each moment.

A launcher tells before the first line of the script runs. Ranks that a script starts by itself
have a number only when ``torch.distributed`` comes up in them, which may be long after the agent.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from vramscope.identity.identity import Identity, identify
from vramscope.identity.inheritance import Inheritance
from vramscope.identity.launch_key import parent_pid
from vramscope.identity.launchers import (
    given_variables,
    is_numbered_later,
    placement_from,
)
from vramscope.identity.process_group import read_process_group
from vramscope.identity.process_group_watcher import ProcessGroupWatcher

_NUMBERED_LATER_WAIT_S: Final = 60.0
_SPAWNED_WAIT_S: Final = 10.0


class IdentitySource:
    """Knows the identity of this process, and when it has to be told anew.

    Args:
        name: name of the run that was given.
        launch_id: launch id that was given.
        script: script that runs, if the caller knows.
        parent: what the watched process that started this one left to it.
        before: the run that this process was in when it was watched before.
        on_rank_in_child: called in a forked child in which a process group comes up, on the
            thread of the job that does it.
    """

    def __init__(
        self,
        name: str | None = None,
        launch_id: str | None = None,
        script: str | None = None,
        parent: Inheritance | None = None,
        before: Inheritance | None = None,
        on_rank_in_child: Callable[[], None] | None = None,
    ) -> None:
        self._name = name
        self._launch_id = launch_id
        self._script = script
        self._parent = parent
        self._before = before
        self._on_rank_in_child = on_rank_in_child
        self._pid = os.getpid()
        self._settled = threading.Event()
        self._has_changed = False
        self._watcher = ProcessGroupWatcher(self._group_changed)
        self.identity = self._identify()

    @property
    def has_parent(self) -> bool:
        """Whether a watched process started this one and left it the run that it is in."""
        return self._parent is not None and self._parent.key == self.identity.key

    def start(self) -> None:
        """Begin to watch for ``torch.distributed``."""
        self._watcher.install()

    def wait(self) -> None:
        """Wait, for a bounded time, while it is likely that more will be known soon.

        On the transport thread, before the process is told to a server for the first time.
        """
        if not self._settled.is_set():
            self._settled.wait(self._wait_s())
            self._settled.set()  # once: without a server, this is called again and again

    def renew(self) -> Identity:
        """The identity as it is known now; stream and start stay what they were."""
        self._has_changed = False
        before = self.identity
        self.identity = replace(
            self._identify(), stream=before.stream, started_ns=before.started_ns
        )
        return self.identity

    @property
    def has_changed(self) -> bool:
        """Whether a process group came up or went since the identity was last made."""
        return self._has_changed

    def remove(self) -> None:
        """Leave PyTorch as it was."""
        self._settled.set()
        self._watcher.remove()

    def _identify(self) -> Identity:
        return identify(
            self._name,
            self._launch_id,
            self._script,
            group=read_process_group(),
            parent=self._parent or self._before,
        )

    def _wait_s(self) -> float:
        if read_process_group() is not None:
            return 0.0
        variables = given_variables()
        if is_numbered_later(variables):
            return _NUMBERED_LATER_WAIT_S
        if parent_pid() is not None and placement_from(variables) is None:
            return _SPAWNED_WAIT_S
        return 0.0

    def _group_changed(self) -> None:
        if os.getpid() == self._pid:
            # Read later, on a thread of ours.
            self._has_changed = True
            self._settled.set()
        elif self._on_rank_in_child is not None and read_process_group() is not None:
            self._watcher.remove()
            self._on_rank_in_child()
