"""A made-up server that talks to each rank of a job on its own, and can shut one out."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable, Iterator

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection

from tests.support.fake_server import FakeServer
from vramscope_protocol.codec import encode
from vramscope_protocol.messages import (
    AgentMessage,
    Command,
    CommandUpdate,
    Decision,
    Register,
)
from vramscope_protocol.session import ServerSession


class RankServer(FakeServer):
    """Knows which connection is of which rank. What it says is said by the test."""

    def __init__(self, ranks: int) -> None:
        super().__init__()
        self.ranks = range(ranks)
        self._connections: dict[int, ServerConnection] = {}
        self._rank_of: dict[str, int] = {}
        self._pids: dict[int, int] = {}
        self._updates: list[tuple[int, CommandUpdate]] = []
        self._shut_out: set[int] = set()
        self._told: dict[int, list[Command]] = {rank: [] for rank in self.ranks}
        self._asked = 0

    def __enter__(self) -> RankServer:
        self.start()
        return self

    def wait_for_ranks(self, timeout_s: float = 90.0) -> None:
        """Wait until all are connected."""
        self.wait_for(lambda _: set(self._connections) == set(self.ranks), timeout_s)

    def pid(self, rank: int) -> int:
        """The process of a rank."""
        return self._pids[rank]

    def tell(self, message: Command | Decision, ranks: Iterable[int] | None = None) -> None:
        """Send to these ranks, or to all that are connected; commands again if they are lost."""
        for rank in list(self._connections) if ranks is None else ranks:
            if isinstance(message, Command):
                self._told[rank].append(message)
            with contextlib.suppress(ConnectionClosed):
                self._connections[rank].send(encode(message))

    def states(self, rank: int, identity: str) -> list[str]:
        """States of a command on a rank, in order."""
        return [update.state for update in self.updates(rank, identity)]

    def updates(self, rank: int, identity: str) -> list[CommandUpdate]:
        """What a rank has said of a command."""
        return [each for of, each in list(self._updates) if of == rank and each.id == identity]

    def wait_for_state(
        self, identity: str, state: str, ranks: Iterable[int] | None = None, timeout_s: float = 20.0
    ) -> None:
        """Wait until these ranks, or all, have said that a command is in a state."""
        wanted = self.ranks if ranks is None else list(ranks)
        self.wait_for(
            lambda _: all(state in self.states(rank, identity) for rank in wanted), timeout_s
        )

    def step(self, rank: int = 0) -> int:
        """The steps that a rank has finished: it says so of a step that is over."""
        self._asked += 1
        identity = f"step-{self._asked}"
        self.tell(Command(identity, "empty_cache", at_step=0), [rank])
        self.wait_for_state(identity, "refused", [rank])
        receipt = self.updates(rank, identity)[-1].receipt
        assert receipt is not None
        assert receipt.step is not None
        return receipt.step

    def shut_out(self, rank: int) -> None:
        """Cut a rank's connection and take no other one of it."""
        self._shut_out.add(rank)
        with contextlib.suppress(OSError):
            self._connections.pop(rank).socket.shutdown(socket.SHUT_RDWR)

    def let_in(self, rank: int) -> None:
        """Take it again, once it comes."""
        self._shut_out.discard(rank)

    @contextlib.contextmanager
    def without(self, rank: int) -> Iterator[None]:
        """Be out of a rank's reach for a while, and wait until it is back."""
        self.shut_out(rank)
        try:
            yield
        finally:
            self.let_in(rank)
            self.wait_for_ranks()

    def stop(self) -> None:
        """Be gone, for all."""
        self._connections.clear()
        super().stop()

    def _welcome(self, connection: ServerConnection, session: ServerSession, stream: str) -> None:
        register = next(each for each in self.of_type(Register)[::-1] if each.stream == stream)
        rank = register.rank.rank
        if rank in self._shut_out:
            connection.socket.shutdown(socket.SHUT_RDWR)
            raise ConnectionClosed(None, None)
        super()._welcome(connection, session, stream)
        self._rank_of[stream] = rank
        self._pids[rank] = register.rank.pid
        with self._changed:
            self._connections[rank] = connection
            self._changed.notify_all()
        # As a server does: an agent connects anew when it has more to tell of its process.
        for command in self._told[rank]:
            if not self.updates(rank, command.id):
                connection.send(encode(command))

    def _take(
        self,
        connection: ServerConnection,
        session: ServerSession,
        stream: str,
        message: AgentMessage,
    ) -> None:
        before = self.duplicates
        super()._take(connection, session, stream, message)
        if isinstance(message, CommandUpdate) and self.duplicates == before:
            with self._changed:
                self._updates.append((self._rank_of[stream], message))
                self._changed.notify_all()
