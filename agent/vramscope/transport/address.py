"""Where the server is: the address a person gives, and the URLs that follow from it."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

DEFAULT_PORT = 8470
_SCHEMES = {"http": False, "ws": False, "https": True, "wss": True}


class AddressError(ValueError):
    """The address cannot be used; the message is one line for a person."""


class ServerAddress(Struct, frozen=True):
    """Host and port of a vramscope server, and whether it is reached over TLS."""

    host: str
    port: int
    secure: bool = False

    @property
    def is_loopback(self) -> bool:
        """Whether it is of this machine, and says so itself: no name is looked up."""
        host = self.host.lower()
        try:
            return ipaddress.ip_address(host.partition("%")[0]).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")

    @property
    def netloc(self) -> str:
        """Host and port as they stand in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def http_url(self) -> str:
        """Base of the REST API and of the page, without a slash at the end."""
        return f"{'https' if self.secure else 'http'}://{self.netloc}"

    @property
    def agent_url(self) -> str:
        """Websocket endpoint for agents."""
        return f"{'wss' if self.secure else 'ws'}://{self.netloc}/ws/agent"


def parse_address(url: str) -> ServerAddress:
    """Read ``http(s)://host:port`` or ``ws(s)://host:port``, with or without a final slash.

    Raises:
        AddressError: expected, got, what to do.
    """
    parts = _split(url.strip())
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise _wrong(url)
    if parts.username or parts.password:
        raise AddressError(
            "expected a server URL without a user name; give the token as --token or "
            "VRAMSCOPE_TOKEN"
        )
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise AddressError(
            f"expected a server URL of host and port only, got {_shown(url)}; "
            "leave out everything after the port"
        )
    secure = _SCHEMES[parts.scheme]
    # No port: the scheme's own, as every browser has it; behind a balancer that is what is meant.
    port = parts.port or (443 if secure else 80)
    return ServerAddress(parts.hostname, port, secure)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise AddressError(f"expected a server URL, got {_shown(url)}: {error}") from None
    return parts


def _wrong(url: str) -> AddressError:
    return AddressError(
        f"expected a server URL like http://127.0.0.1:{DEFAULT_PORT}, got {_shown(url)}"
    )


def _shown(url: str) -> str:
    """The URL without what may be a secret in it: query and fragment are cut off."""
    return repr(url.partition("?")[0].partition("#")[0])
