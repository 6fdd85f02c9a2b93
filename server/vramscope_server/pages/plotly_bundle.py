"""``/vendor/plotly.min.js``: read from the installed plotly package, compressed once."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response

from vramscope_protocol.errors import INTERNAL, VramscopeError

_FOREVER: Final = "public, max-age=31536000, immutable"
_ASK_AGAIN: Final = "no-cache"
_GZIP_LEVEL: Final = 6


@dataclass(frozen=True)
class PlotlyBundle:
    """The script, as it is and compressed."""

    version: str
    plain: bytes
    gzipped: bytes

    @classmethod
    def load(cls) -> PlotlyBundle:
        """Read and compress the script; takes a good part of a second.

        Raises:
            VramscopeError: plotly is not installed as expected.
        """
        # Found without being imported: importing plotly takes longer than starting the server.
        spec = find_spec("plotly")
        places = [] if spec is None else spec.submodule_search_locations or []
        for place in places:
            path = Path(place) / "package_data" / "plotly.min.js"
            if path.is_file():
                plain = path.read_bytes()
                return cls(version("plotly"), plain, gzip.compress(plain, _GZIP_LEVEL, mtime=0))
        raise VramscopeError(
            INTERNAL, "expected plotly.min.js in the installed plotly package, found none"
        )


def plotly_router(load: Callable[[], PlotlyBundle] = PlotlyBundle.load) -> APIRouter:
    """Route of the script. It is loaded with the first request and then kept in memory."""
    router = APIRouter(include_in_schema=False)
    bundle = _Once(lambda: asyncio.to_thread(load))

    @router.get("/vendor/plotly.min.js")
    async def get_plotly(request: Request) -> Response:
        script = await bundle.get()
        zipped = "gzip" in request.headers.get("accept-encoding", "")
        etag = f'"plotly-{script.version}{"-gzip" if zipped else ""}"'
        # An address that names the version can be kept for good; the bare one can change.
        keep = _FOREVER if request.query_params.get("v") == script.version else _ASK_AGAIN
        headers = {"etag": etag, "cache-control": keep, "vary": "accept-encoding"}
        known = {tag.strip() for tag in request.headers.get("if-none-match", "").split(",")}
        if etag in known:
            return Response(status_code=304, headers=headers)
        if zipped:
            headers["content-encoding"] = "gzip"
        body = script.gzipped if zipped else script.plain
        return Response(body, headers=headers, media_type="text/javascript")

    return router


class _Once:
    """A value that is made by the first who asks, while the others wait for it."""

    def __init__(self, make: Callable[[], Awaitable[PlotlyBundle]]) -> None:
        self._make = make
        self._lock = asyncio.Lock()
        self._value: PlotlyBundle | None = None

    async def get(self) -> PlotlyBundle:
        async with self._lock:
            if self._value is None:
                self._value = await self._make()
            return self._value
