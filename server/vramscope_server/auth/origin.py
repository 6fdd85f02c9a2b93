"""Which web page a request comes from, and under which name it reached us. Pure checks."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from vramscope_protocol.errors import FORBIDDEN, ORIGIN_REFUSED, VramscopeError
from vramscope_server.settings import is_loopback_host


def host_name(host: str) -> str:
    """Name part of a ``Host`` header, without the port."""
    if host.startswith("["):
        return host.partition("]")[0][1:].lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()


def check_host(host: str, allow_hosts: Collection[str]) -> None:
    """Refuse a name that is not this machine's, on a server that only this machine can reach.

    A web page whose name was made to resolve to 127.0.0.1 (DNS rebinding) is of the same origin
    as the server for the browser; its name in ``Host`` is what gives it away.

    Raises:
        VramscopeError: ``forbidden``.
    """
    name = host_name(host)
    if not is_loopback_host(name) and name not in allow_hosts:
        raise VramscopeError(
            FORBIDDEN,
            f"expected a Host of this machine (localhost, 127.0.0.1), got {host!r}; "
            "start the server with --allow-host to allow another name",
        )


def check_origin(origin: str, host: str) -> None:
    """Refuse a page of another origin.

    Schemes are not compared: behind a proxy that ends TLS the page has https and we have http.

    Raises:
        VramscopeError: ``origin_refused``.
    """
    try:
        parts = urlsplit(origin)
        same = parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()
    except ValueError:  # an Origin that is no URL at all
        same = False
    if not host or not same:
        raise VramscopeError(
            ORIGIN_REFUSED, f"expected a page of this server ({host}), got one of {origin}"
        )
