from __future__ import annotations

from vramscope import __version__
from vramscope_server.version import server_software, server_version


def test_one_version_for_all() -> None:
    assert server_version() == __version__
    assert server_software() == f"vramscope-server {__version__}"
