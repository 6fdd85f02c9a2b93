"""Whether a Python from 3.14 on was started so that nobody may reach in (PEP 768)."""

from __future__ import annotations

from typing import Final

_VARIABLE: Final = b"PYTHON_DISABLE_REMOTE_DEBUG="
_OPTIONS: Final = (b"disable-remote-debug", b"disable_remote_debug")


def why_switched_off(pid: int) -> str | None:
    """The reason, in a sentence without a full stop; None if nothing speaks against it.

    Raises:
        OSError: the process is gone or may not be read.
    """
    with open(f"/proc/{pid}/environ", "rb") as file:
        variables = file.read().split(b"\0")
    if any(text.startswith(_VARIABLE) and text != _VARIABLE for text in variables):
        return "its environment has PYTHON_DISABLE_REMOTE_DEBUG set"
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        arguments = file.read().split(b"\0")
    for option, value in zip(arguments, [*arguments[1:], b""], strict=True):
        if option.removeprefix(b"-X") in _OPTIONS or (option == b"-X" and value in _OPTIONS):
            return "it was started with -X disable-remote-debug"
    return None
