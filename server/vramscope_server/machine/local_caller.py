"""Whether a request comes from this machine, and not through a proxy that stands on it. Pure."""

from __future__ import annotations

from typing import Final

from starlette.requests import HTTPConnection

from vramscope_server.auth.origin import host_name
from vramscope_server.settings import is_loopback_host

_FORWARDING: Final = ("forwarded", "via", "x-real-ip", "cf-connecting-ip", "true-client-ip")
_FORWARDING_PREFIX: Final = "x-forwarded-"


def is_local_caller(connection: HTTPConnection) -> bool:
    """Whether peer and ``Host`` are this machine's own and no header tells of another hop.

    A proxy on this machine is a loopback peer too: what it adds, or the name that it was called
    by, gives it away. One that adds nothing and rewrites ``Host`` cannot be told from a browser.
    """
    if connection.client is None or not is_loopback_host(connection.client.host):
        return False
    headers = connection.headers
    if any(name in _FORWARDING or name.startswith(_FORWARDING_PREFIX) for name in headers):
        return False
    return is_loopback_host(host_name(headers.get("host", "")))
