"""Transports that are stopped at the end of the test, and a server for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.fake_server import FakeServer
from tests.support.transport_peer import Peer


@pytest.fixture
def connect() -> Iterator[Callable[..., Peer]]:
    """Starts a transport with an outbox towards an address."""
    peers: list[Peer] = []

    def make(*args: object, **options: object) -> Peer:
        peers.append(Peer(*args, **options))  # type: ignore[arg-type]  # passed on as they are
        return peers[-1]

    yield make
    for peer in peers:
        peer.transport.stop(2)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """A server that does nothing wrong until the test says so."""
    with FakeServer() as server:
        yield server
