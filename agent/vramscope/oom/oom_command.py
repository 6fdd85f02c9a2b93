"""The command ``oom_report``: what fills the memory here, while another rank ran out of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from vramscope.commands.call import Call, Handler
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import RATE_LIMITED, VramscopeError
from vramscope_protocol.parameters import OomReportParams

PAUSE_S: Final = 10.0
"""Between two reports that are asked for."""


def oom_handlers(
    report: Callable[[str], str], clock_s: Callable[[], float] = time.monotonic
) -> dict[str, Handler]:
    """The command by its name.

    Args:
        report: makes a report that is linked to another one, and returns its id.
        clock_s: of a clock that does not go back.
    """
    next_s = -PAUSE_S

    def oom_report(call: Call) -> Receipt:
        nonlocal next_s
        now_s = clock_s()
        if now_s < next_s:
            raise VramscopeError(RATE_LIMITED, f"the last report is less than {PAUSE_S:g} s old")
        next_s = now_s + PAUSE_S
        params = call.params if type(call.params) is OomReportParams else OomReportParams()
        identity = report(params.linked_to)
        return Receipt("done", message=f"Report {identity}.", result={"report": identity})

    return {"oom_report": oom_report}
