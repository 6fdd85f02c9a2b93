"""Which release this server is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def server_version() -> str:
    """Version of the installed distribution: agent, server and page share it."""
    try:
        return version("vramscope")
    except PackageNotFoundError:
        return "unknown"  # a source tree on PYTHONPATH, never installed


def server_software() -> str:
    """Name and version, as the server introduces itself to its peers."""
    return f"vramscope-server {server_version()}"
