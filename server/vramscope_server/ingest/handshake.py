"""How an agent's connection opens: hello, token, who it is. And how its frames are received."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

from vramscope_protocol.errors import BAD_MESSAGE, FORBIDDEN, ProtocolError, VramscopeError
from vramscope_protocol.messages import AgentMessage, Auth, Register
from vramscope_protocol.session import ServerSession
from vramscope_server.auth.principal import AGENT, Principal
from vramscope_server.ingest.message_checks import check_register

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Authenticate = Callable[[str, str], Awaitable[Principal]]
"""Who presents a token from an address; raises VramscopeError if it is of no use."""


class Disconnected(Exception):
    """The agent's connection is gone."""


class Newcomer(NamedTuple):
    """Who is at the door: what it says of itself, and whose token it has shown."""

    register: Register
    owner: str


async def receive_message(session: ServerSession, receive: Receive) -> AgentMessage | None:
    """The next message; ``None`` for one of a type that this version does not know.

    Raises:
        Disconnected: the connection is gone.
        ProtocolError: the frame is malformed, too large or out of place.
    """
    event = await receive()
    if event["type"] == "websocket.disconnect":
        raise Disconnected
    frame = event.get("bytes")
    if frame is None:
        frame = event.get("text") or ""
    try:
        return session.receive(frame)
    except (RecursionError, UnicodeDecodeError) as error:
        raise ProtocolError(BAD_MESSAGE, f"not a message: {error}") from None


async def shake_hands(
    session: ServerSession, receive: Receive, authenticate: Authenticate, address: str
) -> Newcomer:
    """Take an agent's opening messages until it has said which stream follows.

    Raises:
        Disconnected: the connection is gone.
        ProtocolError: a malformed or misplaced message, or a token that does not do.
    """
    owner = ""
    while True:
        message = await receive_message(session, receive)
        if isinstance(message, Auth):
            try:
                principal = await authenticate(message.token, address)
            except VramscopeError as error:
                raise ProtocolError(error.code, error.message) from None
            if AGENT not in principal.scopes:
                raise ProtocolError(FORBIDDEN, f"expected a token with the scope {AGENT!r}")
            owner = principal.owner
            session.authenticated()
        elif isinstance(message, Register):
            check_register(message)
            return Newcomer(message, owner)
