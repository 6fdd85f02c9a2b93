"""``vramscope token``: the server's own token command."""

from __future__ import annotations

from vramscope.cli.serve import become_server


def execute(arguments: list[str]) -> int:
    """Replace this process by the server's token command."""
    become_server(["token", *arguments])
    return 0  # pragma: no cover - the process is another one by now
