from __future__ import annotations

import pytest
from starlette.requests import HTTPConnection

from vramscope_server.machine.local_caller import is_local_caller


def connection(peer: str | None, **headers: str) -> HTTPConnection:
    sent = {"host": "127.0.0.1:8470"} | {k.replace("_", "-"): v for k, v in headers.items()}
    raw = [(name.encode(), value.encode()) for name, value in sent.items()]
    return HTTPConnection(
        {"type": "http", "headers": raw, "client": None if peer is None else (peer, 1)}
    )


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.8.8", "::1"])
@pytest.mark.parametrize("host", ["127.0.0.1:8470", "localhost:1", "[::1]:8470"])
def test_a_browser_on_this_machine(peer: str, host: str) -> None:
    assert is_local_caller(connection(peer, host=host))


@pytest.mark.parametrize("peer", ["10.0.0.4", "192.168.1.9", "fe80::1", "testclient", None])
def test_a_peer_of_another_machine(peer: str | None) -> None:
    assert not is_local_caller(connection(peer))


@pytest.mark.parametrize(
    "headers",
    [
        {"x_forwarded_for": "127.0.0.1"},
        {"x_forwarded_proto": "https"},
        {"forwarded": "for=127.0.0.1"},
        {"via": "1.1 proxy"},
        {"x_real_ip": "127.0.0.1"},
        {"host": "gpu-box.example"},
        {"host": ""},
    ],
)
def test_a_proxy_on_this_machine_gives_itself_away(headers: dict[str, str]) -> None:
    assert not is_local_caller(connection("127.0.0.1", **headers))
