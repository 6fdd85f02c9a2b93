"""The 0600 file through which a local server is found: its address, token and process."""

from __future__ import annotations

import os
import stat
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from vramscope.transport.address import AddressError, ServerAddress, parse_address

_MAX_BYTES: Final = 64 << 10
_HEALTH_TIMEOUT_S: Final = 2.0


class LocalServer(msgspec.Struct, frozen=True):
    """What a running local server wrote about itself."""

    url: str
    token: str
    pid: int
    started_ns: int = 0
    version: str = ""

    @property
    def address(self) -> ServerAddress:
        """Where it listens."""
        return parse_address(self.url)


def runtime_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Private folder of this user for what lives as long as a login or a boot."""
    variables = os.environ if environ is None else environ
    base = variables.get("XDG_RUNTIME_DIR")
    if base and os.path.isabs(base):
        return Path(base, "vramscope")
    return Path(f"/tmp/vramscope-{os.getuid()}")


def read_local_server(folder: Path | None = None) -> LocalServer | None:
    """The local server of this user, if its file is private and its process alive."""
    path = (folder or runtime_folder()) / "server.json"
    try:
        text = _read_private(path)
        server = msgspec.json.decode(text, type=LocalServer)
        parse_address(server.url)
        os.kill(server.pid, 0)
    except (OSError, msgspec.DecodeError, AddressError, OverflowError):
        return None
    return server if server.pid > 0 else None


def is_healthy(server: LocalServer) -> bool:
    """Whether the server answers (its process id may belong to something else by now)."""
    # Never through a proxy: the address is one of this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{server.address.http_url}/healthz", timeout=_HEALTH_TIMEOUT_S) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError, ValueError):
        return False


def _read_private(path: Path) -> bytes:
    """Read a file that nobody else can have written or read.

    Raises:
        OSError: it is missing, a link, of somebody else, or open to others.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        is_private = stat.S_ISREG(status.st_mode) and not status.st_mode & 0o077
        if not is_private or status.st_uid != os.getuid():
            raise PermissionError(f"expected a file of this user with mode 0600: {path}")
        return os.read(descriptor, _MAX_BYTES)
    finally:
        os.close(descriptor)
