"""What ends a training loop that nothing else ends, when a person has told the job to stop."""

from __future__ import annotations


class Stopped(KeyboardInterrupt):
    """Raised out of the end of an optimizer step by the command ``stop``.

    It is a ``KeyboardInterrupt``, so that what handles Ctrl-C, and saves what is to be saved,
    handles this as well.
    """

    __module__ = "vramscope"
