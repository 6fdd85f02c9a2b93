"""A transport with an outbox behind it, as the agent has them."""

from __future__ import annotations

from tests.support.fake_server import FakeServer
from vramscope.notices import Notices
from vramscope.outbox.losses import Losses
from vramscope.outbox.outbox import Outbox
from vramscope.transport.address import parse_address
from vramscope.transport.backoff import Backoff
from vramscope.transport.limits import ConnectionLimits, TransportLimits
from vramscope.transport.transport import Target, Transport
from vramscope_protocol.messages import (
    Command,
    Decision,
    Event,
    RankInfo,
    Register,
    RunInfo,
    Welcome,
)

QUICK = TransportLimits(connection=ConnectionLimits(close_timeout_s=0.2))


class Peer:
    """A transport with its outbox, towards one address."""

    def __init__(
        self, url: str, token: str = FakeServer.token, limits: TransportLimits = QUICK
    ) -> None:
        self.notices = Notices()
        self.outbox = Outbox(1 << 20, None, Losses(), self.notices)
        self.commands: list[Command | Decision] = []
        self.welcomes = 0
        self.attempts = 0
        self._target = Target(parse_address(url), token)
        self.transport = Transport(
            self.outbox,
            self._find,
            lambda: Register(
                "stream-1", RunInfo("run", "run"), RankInfo(0, "host", 1), self.outbox.first_seq
            ),
            self._told,
            self.notices,
            on_welcome=lambda target: self._welcomed(),
            limits=limits,
            backoff=Backoff(first_s=0.01, longest_s=0.02),
        )
        self.transport.start()

    def _told(self, message: Command | Decision | Welcome) -> None:
        if not isinstance(message, Welcome):
            self.commands.append(message)

    def _find(self) -> Target:
        self.attempts += 1
        return self._target

    def _welcomed(self) -> None:
        self.welcomes += 1

    def put(self, count: int = 1, text: str = "") -> None:
        for _ in range(count):
            self.outbox.put(Event(0, 1, "mark", None, text))
