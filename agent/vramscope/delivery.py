"""One stream on its way to the server: its outbox, its spool and its transport."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from vramscope.config import Config
from vramscope.guard import guarded
from vramscope.identity.identity import Identity
from vramscope.notices import Notices
from vramscope.outbox.losses import Losses
from vramscope.outbox.outbox import Outbox
from vramscope.outbox.spool import Spool
from vramscope.transport.conversation import MapFeed
from vramscope.transport.limits import TransportLimits
from vramscope.transport.snapshot_lane import SnapshotLane
from vramscope.transport.transport import Target, Transport
from vramscope_protocol.messages import Command, Decision, Goodbye, Register, Welcome

_WINDOW_BYTES: Final = 2 << 20
# Of the time to close: for closing the connection.
_CLOSE_SHARE: Final = 0.2


class Delivery:
    """Brings one stream of one identity to the server.

    Args:
        config: options.
        identity: who the stream is of.
        notices: where failures are said and noted.
        find_target: says which server to talk to; transport thread.
        register: what to tell of the process, on each connection; transport thread.
        submit: takes a command of the server, its decision on one, or its welcome.
        welcomed: told when a server has taken the stream.
        open_map: makes the feed of memory map frames of one connection; transport thread.
        snapshots: what is sent when there is nothing else.
    """

    def __init__(
        self,
        config: Config,
        identity: Identity,
        notices: Notices,
        *,
        find_target: Callable[[], Target | None],
        register: Callable[[Delivery], Register],
        submit: Callable[[Command | Decision | Welcome], None],
        welcomed: Callable[[Target], None],
        open_map: Callable[[], MapFeed] | None = None,
        snapshots: SnapshotLane | None = None,
    ) -> None:
        self.identity = identity
        self._snapshots = snapshots
        self.is_registered = False
        """Whether a server may have heard of the stream, and under which identity."""
        losses = Losses()
        spool = Spool(config.spool_dir, identity.stream, config.spool_bytes, losses)
        self.outbox = Outbox(
            config.outbox_bytes, spool if config.spool_bytes else None, losses, notices
        )
        self.transport = Transport(
            self.outbox,
            find_target,
            lambda: register(self),
            submit,
            notices,
            on_welcome=welcomed,
            limits=TransportLimits(window_bytes=min(_WINDOW_BYTES, config.outbox_bytes // 4)),
            open_map=open_map,
            snapshots=snapshots,
        )

    def deliver_snapshots(self, timeout_s: float) -> None:
        """Send the snapshots that wait, as far as the time goes, and give up on the others."""
        snapshots = self._snapshots
        if snapshots is None or snapshots.is_empty:
            return
        if self.transport.is_connected:
            snapshots.wait_until_empty(timeout_s)
        snapshots.refuse_all("the process ended before it was delivered")

    def close(self, goodbye: Goodbye, total_s: float, deadline_s: float) -> bool:
        """Deliver what is left and the goodbye.

        Args:
            goodbye: how the stream ends.
            total_s: time for the whole end, of which a part is for closing the connection.
            deadline_s: when it must be over, on the monotonic clock.

        Returns:
            Whether everything was delivered.
        """
        self.outbox.put(goodbye)
        left_s = deadline_s - time.monotonic()
        is_delivered = self.transport.flush(left_s - total_s * _CLOSE_SHARE)
        self.transport.stop(deadline_s - time.monotonic())
        with guarded("spool"):
            self.outbox.remove_spool(deadline_s - time.monotonic())
        return is_delivered

    def abandon(self) -> None:
        """End without a word to any server: there is nothing that anybody should know."""
        self.transport.stop(0.0)
        with guarded("spool"):
            self.outbox.remove_spool()

    def forget_after_fork(self) -> None:
        """In a forked child: let go of everything, take no lock, tell nobody."""
        self.transport.forget_after_fork()
        self.outbox.forget_after_fork()
