"""What a server may do to this job: as an option says, or by where the server is."""

from __future__ import annotations

from typing import Final

from vramscope.config import Allow, Config
from vramscope_protocol.messages import Welcome

_LET: Final = (
    "so nobody there may act on this job: --allow control or VRAMSCOPE_ALLOW=control lets them"
)
ELSEWHERE: Final = f"the server is on another machine, {_LET}"
REACHABLE: Final = f"other machines can reach the server, {_LET}"


class Allowance:
    """Changes with each server that takes the stream, where no option says what is allowed.

    Written on the receiver thread, before any command of that server is taken.

    Args:
        config: what was asked for.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self.allow: Allow = config.allow
        """What holds now."""
        self.why = ELSEWHERE if config.observes_by_default else ""
        """Why the job only lets itself be observed, if nobody has asked for that."""

    def take(self, welcome: Welcome) -> None:
        """A server has taken the stream. One that lies about itself had to be trusted anyway: its
        address is one of this machine."""
        if self._config.is_allow_given or self._config.observes_by_default:
            return
        self.allow = "observe" if welcome.reachable else "control"
        self.why = REACHABLE if welcome.reachable else ""
