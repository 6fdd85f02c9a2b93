"""REST calls of the command line: where the server is, and what its answers mean."""

from __future__ import annotations

import argparse
import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, BinaryIO, Final

from vramscope.cli.problem import Problem
from vramscope.config import ConfigError, load_config
from vramscope.local.runtime_file import read_local_server
from vramscope.transport.address import ServerAddress
from vramscope_protocol.errors import AUTH_FAILED, TOKEN_EXPIRED

_TIMEOUT_S: Final = 10.0
_MAX_ANSWER_BYTES: Final = 64 << 20
_PIECE_BYTES: Final = 1 << 18
_ADVICE: Final = {
    AUTH_FAILED: "; give the server's token as --token or VRAMSCOPE_TOKEN",
    TOKEN_EXPIRED: "; make a new one with: vramscope token",
}


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """The options that say which server is asked."""
    parser.add_argument("--url", metavar="URL", help="the server; default: the local one")
    parser.add_argument("--token", metavar="TOKEN", help="its token")


class ApiClient:
    """Asks one server."""

    def __init__(self, address: ServerAddress, token: str) -> None:
        self._base = f"{address.http_url}/api/v1"
        self._where = address.http_url
        self._token = token
        # Local addresses are not to be looked for behind the proxy of an HTTP_PROXY variable.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> ApiClient:
        """The server that was named, else the running local one.

        Raises:
            Problem: neither, or the address cannot be one.
        """
        try:
            config = load_config(url=options.url, token=options.token)
        except ConfigError as error:
            raise Problem(str(error)) from None
        local = read_local_server()
        if config.address is not None:
            if config.token is None and local is not None and local.address == config.address:
                return cls(config.address, local.token)
            return cls(config.address, config.token or "")
        if local is None:
            raise Problem("no local server is running; start one with: vramscope serve, or --url")
        return cls(local.address, config.token or local.token)

    def get(self, *path: str, **query: str) -> Any:
        """The answer to a GET of this path below the API."""
        asked = f"?{urllib.parse.urlencode(query)}" if query else ""
        return self._call(urllib.request.Request(self._url(path) + asked))

    def post(self, *path: str, body: dict[str, Any]) -> Any:
        """The answer to a POST."""
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        return self._call(urllib.request.Request(self._url(path), data, headers))

    def download(self, *path: str, to: BinaryIO) -> int:
        """Write the answer to a GET, whatever it is, to a file; how many bytes it has.

        Raises:
            Problem: it was refused, or did not come whole.
            OSError: the file cannot be written.
        """
        request = urllib.request.Request(self._url(path))
        request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                expected_bytes = int(answer.headers.get("Content-Length", 0))
                size_bytes = 0
                while piece := _read(answer, self._where):
                    to.write(piece)
                    size_bytes += len(piece)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error.code, error.read(_MAX_ANSWER_BYTES)) from None
        except urllib.error.URLError as error:
            raise Problem(f"no server answers at {self._where} ({error.reason})") from None
        if size_bytes != expected_bytes:
            raise Problem(f"expected {expected_bytes} bytes, got {size_bytes}; try again", 1)
        return size_bytes

    def _url(self, path: tuple[str, ...]) -> str:
        return "/".join([self._base, *(urllib.parse.quote(part, safe="") for part in path)])

    def _call(self, request: urllib.request.Request) -> Any:
        # Unredirected: where a redirect leads, the token does not belong.
        request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        request.add_header("X-Vramscope-Origin", "cli")
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                return json.loads(answer.read(_MAX_ANSWER_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error.code, error.read(_MAX_ANSWER_BYTES)) from None
        except (urllib.error.URLError, OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise Problem(f"no server answers at {self._where} ({reason})") from None
        except ValueError:
            raise self._foreign() from None

    def _refusal(self, status: int, body: bytes) -> Problem:
        try:
            error = json.loads(body)["error"]
            code, message = str(error["code"]), str(error["message"])
        except (ValueError, KeyError, TypeError):
            return self._foreign()
        is_bad_input = status in (400, 401, 404, 422)
        return Problem(f"{message}{_ADVICE.get(code, '')}", 2 if is_bad_input else 1)

    def _foreign(self) -> Problem:
        return Problem(f"what answers at {self._where} is not a vramscope server")


def _read(answer: Any, where: str) -> bytes:
    try:
        piece: bytes = answer.read(_PIECE_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise Problem(f"the connection to {where} was lost ({error}); try again", 1) from None
    return piece
