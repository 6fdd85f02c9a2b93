"""A frame with the page of one run: asked for at the server, and written as HTML.

The address in the frame is saved with the notebook, and a notebook is passed on. So it holds no
token of the kernel's own, but one that the server makes for this purpose: for this run alone, and
for some hours.
"""

from __future__ import annotations

import html
import ipaddress
import math
import time
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from vramscope.cli.api_client import ApiClient
from vramscope.cli.problem import Problem
from vramscope.transport.address import ServerAddress
from vramscope.transport.transport import Target

_HTML: Final = """\
<iframe src="{source}" title="vramscope: {name}" width="100%" height="{height_px}" \
style="border: 0" allow="clipboard-write; fullscreen"></iframe>
<p style="margin: 4px 0; font-size: 12px">vramscope: run {name} on {host}, \
<a href="{source}" target="_blank" rel="noopener">open in a tab</a> (for {hours} h). \
{advice}</p>"""


class Frame(Struct, frozen=True):
    """What the server gave for one frame."""

    path: str
    token: str
    expires_ns: int

    def source(self, base_url: str) -> str:
        """Address of the page in the frame. The token is in the fragment, which browsers keep to
        themselves: it is in no request, no log and no ``Referer``."""
        return f"{base_url}{self.path}#token={self.token}&until={self.expires_ns // 10**9}"


def open_frame(target: Target, run_id: str, scopes: Iterable[str]) -> Frame:
    """Ask the server for a frame of a run.

    Args:
        target: the server, and a token of it with the scope ``view``.
        run_id: the run.
        scopes: what the page may do; it gets those of them that the token has.

    Raises:
        Problem: it refuses, is too old to know frames, or does not answer.
    """
    client = ApiClient(target.address, target.token)
    answer: Any = client.post("runs", run_id, "frames", body={"scopes": list(scopes)})
    match answer:
        case {"path": str(path), "token": str(token), "expires_ns": int(expires_ns)}:
            return Frame(path, token, expires_ns)
        case _:
            raise Problem(f"what answers at {target.address.http_url} knows no frames")


def frame_html(
    frame: Frame, address: ServerAddress, base_url: str, *, name: str, host: str, height_px: int
) -> str:
    """The frame, and below it what to do where the browser cannot reach the server.

    Args:
        frame: from :func:`open_frame`.
        address: where the kernel reaches the server.
        base_url: where the browser does.
        name: of the run.
        host: the machine that the kernel runs on.
        height_px: of the frame.
    """
    left_s = frame.expires_ns / 1e9 - time.time()
    return _HTML.format(
        source=html.escape(frame.source(base_url)),
        name=html.escape(name),
        host=html.escape(host),
        height_px=height_px,
        hours=max(1, math.ceil(left_s / 3600 - 0.5)),
        advice=_advice(address, base_url, host),
    )


def _advice(address: ServerAddress, base_url: str, host: str) -> str:
    url = html.escape(base_url)
    if base_url != address.http_url or not _is_loopback(address.host):
        return f"Nothing above? Your browser has to reach {url}."
    forward = html.escape(f"ssh -L {address.port}:127.0.0.1:{address.port} {host}")
    return (
        f"Nothing above? The server answers on that machine only, at {url}; "
        f"elsewhere forward the port: <code>{forward}</code>"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
