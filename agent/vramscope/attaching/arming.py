"""The line of one request in a process: armed, armed again where need be, and taken back."""

from __future__ import annotations

import os
import time
from typing import Final

from vramscope.attaching.injected_line import injected_line
from vramscope.attaching.outcome import AttachError
from vramscope.attaching.request import Request
from vramscope.injection import Injected, InjectionError, Interpreter, inject

_RETRY_S: Final = 0.05
_NEVER_ARMED: Final = frozenset({"gone", "permission", "disabled"})


class Arming:
    """Has the main thread of a process look into the folder of a request.

    Args:
        interpreter: of the process.
        pid: of the process, as it sees it itself.
        request: what it is to find there.
    """

    def __init__(self, interpreter: Interpreter, pid: int, request: Request) -> None:
        self._interpreter = interpreter
        self._request = request
        self._line = injected_line(request.folder, pid)
        self._script = f"{request.folder}/line.py"
        self._times = 0
        request.add("line.py", self._line)

    def arm(self, wait_s: float = 0.0) -> Injected:
        """Arm the line, again and again while the process is only busy at the wrong moment.

        Args:
            wait_s: how long it may be busy.

        Raises:
            AttachError: it cannot be armed.
        """
        deadline_s = time.monotonic() + wait_s
        self._times += 1
        while True:
            try:
                return inject(self._interpreter, self._line, script=self._script)
            except InjectionError as error:
                if error.kind != "busy" or time.monotonic() > deadline_s:
                    message = f"process {self._interpreter.pid}: {error}"
                    raise AttachError(message, error.kind) from None
            time.sleep(_RETRY_S)

    def take_back(self) -> None:
        """See to it that nothing armed outlives the folder, which is about to be removed.

        A line that is queued looks whose folder it finds. A script is only a path, which anybody
        could give another file then: so one that may still be waiting is replaced by an empty one,
        and where that is not possible the folder stays, empty, and so keeps its name taken.
        """
        if self._interpreter.how != "remote_exec":
            return
        if self._times == 1 and self._request.is_picked_up():
            return
        self._request.stays = True
        try:
            inject(self._interpreter, b"", script=os.devnull)
        except InjectionError as error:
            self._request.stays = error.kind not in _NEVER_ARMED
        else:
            self._request.stays = False
