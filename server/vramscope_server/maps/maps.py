"""The memory maps of all ranks that somebody looks at, and the wish for them at the agents."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from vramscope_protocol.live import encode_event_payload
from vramscope_protocol.messages import MapFrame, MapWanted
from vramscope_server.maps.current_map import CurrentMap, MapParts

Deliver = Callable[[bytes, str | None], None]
Ask = Callable[[str, int, MapWanted], object]
Key = tuple[str, int]

WATCH_S: Final = 30.0
"""For how long frames are asked for at a time: the agent goes on for so long after the last
reader left, or lost the server."""
RENEW_S: Final = 10.0
LOOK_S: Final = 5.0
"""For how long they are asked for where one look is wanted: a step may have to end first."""


@dataclass(eq=False)
class MapFollower:
    """One subscription to the map of one rank."""

    key: Key
    deliver: Deliver


@dataclass
class _Audience:
    followers: list[MapFollower] = field(default_factory=list[MapFollower])
    timer: asyncio.TimerHandle | None = None


class Maps:
    """Keeps maps in memory alone and hands each frame to those who follow. On the event loop.

    Args:
        ask: sends an agent the wish for its map.
        max_bytes: memory for all maps; beyond it the one that changed longest ago is forgotten.
    """

    def __init__(self, ask: Ask, max_bytes: int) -> None:
        self._ask = ask
        self._max_bytes = max_bytes
        self._maps: OrderedDict[Key, CurrentMap] = OrderedDict()
        self._audiences: dict[Key, _Audience] = {}

    def whole(self, run_id: str, rank: int) -> dict[str, Any] | None:
        """The present map of a rank as the API has it; ``None`` if there is none."""
        found = self._maps.get((run_id, rank))
        return None if found is None else {"rank": rank, **found.whole()}

    def parts(self, run_id: str, rank: int) -> MapParts | None:
        """The present map of a rank for another thread; ``None`` if there is none."""
        found = self._maps.get((run_id, rank))
        return None if found is None else found.parts()

    def want_look(self, run_id: str, rank: int) -> None:
        """Ask an agent for its map as it is now; nothing where somebody follows it anyway."""
        if (run_id, rank) not in self._audiences:
            self._ask(run_id, rank, MapWanted(LOOK_S, full=True))

    def follow(self, run_id: str, rank: int, deliver: Deliver) -> MapFollower:
        """Follow a map: what is known is delivered before this returns, and the agent is asked."""
        follower = MapFollower((run_id, rank), deliver)
        present = self.whole(run_id, rank)
        if present is not None:
            deliver(_payload(present), _delivery_key(rank))
        audience = self._audiences.setdefault(follower.key, _Audience())
        audience.followers.append(follower)
        if audience.timer is None:
            self._renew(follower.key, full=True)
        elif present is None or present["rate_hz"] == 0:
            # Where the map comes on request only, a new reader is the request.
            self._ask(run_id, rank, MapWanted(WATCH_S, full=True))
        return follower

    def unfollow(self, follower: MapFollower) -> None:
        """End a subscription. Ending it twice is harmless."""
        audience = self._audiences.get(follower.key)
        if audience is None or follower not in audience.followers:
            return
        audience.followers.remove(follower)
        if not audience.followers:
            if audience.timer is not None:
                audience.timer.cancel()
            del self._audiences[follower.key]

    def rank_connected(self, run_id: str, rank: int) -> None:
        """An agent came, perhaps back: it does not know that somebody looks."""
        if (run_id, rank) in self._audiences:
            self._ask(run_id, rank, MapWanted(WATCH_S, full=True))

    def take(self, run_id: str, rank: int, frame: MapFrame) -> None:
        """A frame of an agent.

        Raises:
            ProtocolError: the frame says what cannot be.
        """
        key = (run_id, rank)
        known = self._maps.get(key) or CurrentMap()
        news = known.take(frame)
        if news is None:
            # The chain is broken: forgotten here, or another server had the frames before.
            if key in self._audiences:
                self._ask(run_id, rank, MapWanted(WATCH_S, full=True))
            return
        self._maps[key] = known
        self._maps.move_to_end(key)
        self._forget_oldest()
        audience = self._audiences.get(key)
        if audience is not None:
            body = _payload({"rank": rank, **news})
            for follower in tuple(audience.followers):
                follower.deliver(body, _delivery_key(rank))

    def close(self) -> None:
        """Ask no agent any more."""
        for audience in self._audiences.values():
            if audience.timer is not None:
                audience.timer.cancel()

    def _renew(self, key: Key, *, full: bool = False) -> None:
        audience = self._audiences[key]
        self._ask(*key, MapWanted(WATCH_S, full=full))
        loop = asyncio.get_running_loop()
        audience.timer = loop.call_later(RENEW_S, self._renew, key)

    def _forget_oldest(self) -> None:
        held_bytes = sum(each.held_bytes for each in self._maps.values())
        while held_bytes > self._max_bytes and len(self._maps) > 1:
            _, oldest = self._maps.popitem(last=False)
            held_bytes -= oldest.held_bytes


def _delivery_key(rank: int) -> str:
    return f"map {rank}"


def _payload(news: dict[str, Any]) -> bytes:
    return encode_event_payload({"kind": "map", **news})
