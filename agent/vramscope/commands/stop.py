"""Ends training after a step: the way its framework does, or its loop, or Ctrl-C would.

Who ends it is found out at that step, in this order: a framework whose callback takes it over; a
loop that asks ``vramscope.should_stop()``; a framework that is found on the stack, by its own flag;
else :class:`vramscope.Stopped` is raised out of the hook at the step's end, after the receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from vramscope.commands.call import Call, Handler
from vramscope.commands.framework_flag import raise_flag
from vramscope.stopped import Stopped
from vramscope_protocol.commands import Receipt

SILENT_STEPS: Final = 50
"""A framework that has not asked for so many steps trains no more: it failed, and said no word."""


class Stop:
    """Knows whether training is to end, and who is to end it.

    Args:
        step: the steps finished so far.
        raise_flag: tells the framework that trains on this thread to end, and says its name.
    """

    def __init__(self, step: Callable[[], int], raise_flag: Callable[[], str] = raise_flag) -> None:
        self._step = step
        self._raise_flag = raise_flag
        self._framework = ""
        self._asked_at = 0
        self._is_asked_for = False
        self._error: Stopped | None = None
        self.is_wanted = False
        """Whether training is to end now; changes only at the end of a step."""

    def handlers(self) -> Mapping[str, Handler]:
        """What runs the command."""
        return {"stop": self._stop}

    def ask(self) -> bool:
        """The training loop asks whether it is to end: it ends by itself, then."""
        self._is_asked_for = True
        return self.is_wanted

    def framework_begins(self, name: str) -> None:
        """A framework trains from now on, and ends when it sees that this is wanted."""
        self._framework = name
        self._asked_at = self._step()
        # What was to end has ended: this is another training.
        self.is_wanted = False

    def framework_asks(self) -> bool:
        """At each of its steps it asks whether it is to end."""
        self._asked_at = self._step()
        return self.is_wanted

    def framework_ends(self) -> None:
        """It trains no more."""
        self._framework = ""

    def raise_if_due(self) -> None:
        """End training in place of the job, on its training thread, after the step's end.

        Raises:
            Stopped: nobody else does.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _stop(self, call: Call) -> Receipt:
        self.is_wanted = True
        if self._framework and call.step - self._asked_at <= SILENT_STEPS:
            text = f"{self._framework} was told to end training after step {call.step}."
        elif self._is_asked_for:
            text = f"vramscope.should_stop() tells the training loop so, from step {call.step} on."
        elif name := self._raise_flag():
            text = f"{name} was told to end training after step {call.step}, by its own flag."
        else:
            self._error = Stopped(f"a person has stopped training after step {call.step}")
            text = f"vramscope.Stopped was raised after step {call.step}, as Ctrl-C would be."
        return Receipt("done", message=text)
