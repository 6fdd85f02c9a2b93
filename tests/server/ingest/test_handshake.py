from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.ingest_bench import TOKEN, authenticate
from tests.support.streams import registration
from vramscope_protocol.codec import encode
from vramscope_protocol.errors import ProtocolError
from vramscope_protocol.messages import Auth, Hello
from vramscope_protocol.session import ServerSession, State
from vramscope_server.ingest.handshake import Disconnected, shake_hands


def frames(*contents: bytes | str | None) -> asyncio.Queue[dict[str, Any]]:
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    for content in contents:
        if content is None:
            queue.put_nowait({"type": "websocket.disconnect", "code": 1006})
        else:
            key = "bytes" if isinstance(content, bytes) else "text"
            queue.put_nowait({"type": "websocket.receive", key: content})
    return queue


def shake(session: ServerSession, *contents: bytes | str | None) -> Any:
    async def run() -> Any:
        queue = frames(*contents)
        return await shake_hands(session, queue.get, authenticate, "127.0.0.1")

    return asyncio.run(run())


def test_hello_token_register() -> None:
    session = ServerSession()
    unknown = b"\x81\xa4type\xa9tomorrows"  # a message type of a later version
    register = shake(
        session, encode(Hello(1)), unknown, encode(Auth(TOKEN)), encode(registration())
    )
    assert register == (registration(), f"token:{TOKEN}")
    assert session.state is State.REGISTER  # open is for who stores it to say


@pytest.mark.parametrize(
    ("contents", "code"),
    [
        ([encode(Hello(1)), encode(Auth("no"))], "auth_failed"),
        ([encode(Hello(1)), encode(Auth("viewer"))], "forbidden"),
        ([encode(registration())], "unexpected_message"),
        (["text"], "bad_message"),
    ],
)
def test_what_does_not_do(contents: list[bytes | str], code: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        shake(ServerSession(), *contents)
    assert caught.value.code == code


def test_a_peer_that_leaves() -> None:
    with pytest.raises(Disconnected):
        shake(ServerSession(), encode(Hello(1)), None)
