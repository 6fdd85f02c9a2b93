"""Who is asking, and what they may do."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from vramscope_protocol.errors import FORBIDDEN, TOKEN_EXPIRED, VramscopeError

VIEW: Final = "view"
CONTROL: Final = "control"
AGENT: Final = "agent"
SCOPES: Final = frozenset({VIEW, CONTROL, AGENT})
"""``view`` reads, ``control`` sends commands that change a job, ``agent`` delivers data."""

FIXED: Final = "fixed:"
"""What ``parent`` begins with for the token of the server itself, whichever it has at present."""

_HOW_TO_GET: Final = {
    scope: f"whoever runs the server makes one with 'vramscope token create --scope {scopes}'"
    for scope, scopes in ((VIEW, "view"), (CONTROL, "view,control"), (AGENT, "agent"))
}


@dataclass(frozen=True)
class Principal:
    """One authenticated caller.

    Args:
        name: name of the token, for the audit log.
        scopes: what the token allows.
        expires_ns: when it stops to, or None.
        fingerprint: start of the token's hash: tells callers apart without the secret.
        parent: names the token behind it, for what is made from it and ends with it.
        run_id: the only run that the caller may see; None is no such limit.
    """

    name: str
    scopes: frozenset[str]
    expires_ns: int | None = None
    fingerprint: str = ""
    parent: str = ""
    run_id: str | None = None

    @property
    def owner(self) -> str:
        """Whose the runs are that this token begins: the server's owner, or one stored token."""
        return "owner" if self.parent.startswith(FIXED) else f"token:{self.parent}"

    def require(self, scope: str) -> None:
        """Let the caller pass only with ``scope``.

        Raises:
            VramscopeError: ``forbidden`` or ``token_expired``.
        """
        self.require_unexpired()
        if scope not in self.scopes:
            raise VramscopeError(
                FORBIDDEN,
                f"expected a token with the scope {scope!r}, "
                f"got {', '.join(sorted(self.scopes)) or 'none'}; "
                f"{_HOW_TO_GET[scope]}",
            )

    def require_run(self, run_id: str | None) -> None:
        """Let a caller with a limit pass only to its own run.

        Args:
            run_id: the run that is asked for, or None for what belongs to no single one.

        Raises:
            VramscopeError: ``forbidden``.
        """
        if self.run_id is not None and run_id != self.run_id:
            raise VramscopeError(FORBIDDEN, f"the token {self.name!r} is good for one run only")

    def require_unexpired(self) -> None:
        """Let the caller pass only while the token is valid.

        Raises:
            VramscopeError: ``token_expired``.
        """
        if self.expires_ns is not None and time.time_ns() >= self.expires_ns:
            raise VramscopeError(TOKEN_EXPIRED, f"the token {self.name!r} has expired")
