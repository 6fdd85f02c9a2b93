"""The meaning half of one browser connection: requests in, results and events out, no socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from vramscope_protocol.errors import BAD_REQUEST, CONFLICT, NOT_FOUND, VramscopeError
from vramscope_protocol.live import (
    ErrorBody,
    Ping,
    Result,
    SubscribeRun,
    SubscribeRuns,
    Unsubscribe,
    decode_live_request,
    encode_live,
    event_frame,
)
from vramscope_server.auth.principal import Principal
from vramscope_server.live.hub import Deliver, Hub, RunFollower, RunListFollower
from vramscope_server.maps.maps import MapFollower, Maps
from vramscope_server.settings import Limits

Put = Callable[[bytes, str | None], None]
"""Queues a frame; one that waits under the same key is replaced."""


class RunFinder(Protocol):
    """How a run is found by what a person calls it."""

    def find(self, run: str) -> str | None:
        """Id of a run, given its id or its name."""
        ...


class LiveSession:
    """Answers the requests of one page and holds its subscriptions.

    Args:
        hub: where to follow runs.
        registry: finds a run by id or name.
        put: queues a frame for the page.
        limits: ``live_subscriptions`` and ``live_fields``.
        caller: who looks; one in a frame sees its own run only.
        maps: where to follow memory maps.
    """

    def __init__(
        self,
        hub: Hub,
        registry: RunFinder,
        put: Put,
        limits: Limits,
        caller: Principal,
        maps: Maps,
    ) -> None:
        self._caller = caller
        self._hub = hub
        self._registry = registry
        self._put = put
        self._limits = limits
        self._maps = maps
        self._subscriptions: dict[int, RunFollower | RunListFollower] = {}
        self._map_subscriptions: dict[int, MapFollower] = {}

    def receive(self, frame: str | bytes) -> None:
        """Take one request and answer it.

        Raises:
            ProtocolError: the frame is no request; the connection has to end.
        """
        request = decode_live_request(frame)
        try:
            if isinstance(request, SubscribeRuns):
                self._subscribe_runs(request)
            elif isinstance(request, SubscribeRun):
                self._subscribe_run(request)
            elif isinstance(request, Unsubscribe):
                self._unsubscribe(request)
            else:
                self._succeed(request)
        except VramscopeError as error:
            body = ErrorBody(error.code, error.message)
            self._put(encode_live(Result(request.id, ok=False, error=body)), None)

    def close(self) -> None:
        """End every subscription."""
        for follower in self._subscriptions.values():
            self._hub.unfollow(follower)
        for map_follower in self._map_subscriptions.values():
            self._maps.unfollow(map_follower)
        self._subscriptions.clear()
        self._map_subscriptions.clear()

    def _subscribe_runs(self, request: SubscribeRuns) -> None:
        self._caller.require_run(None)
        self._check_new(request.id)
        self._succeed(request)
        self._subscriptions[request.id] = self._hub.follow_runs(self._deliver(request.id))

    def _subscribe_run(self, request: SubscribeRun) -> None:
        self._check_new(request.id)
        if len(request.fields) > self._limits.live_fields:
            raise VramscopeError(
                BAD_REQUEST,
                f"expected at most {self._limits.live_fields} fields, got {len(request.fields)}",
            )
        run_id = self._registry.find(request.run)
        if run_id is None:
            raise VramscopeError(NOT_FOUND, f"no run with the id or the name {request.run!r}")
        self._caller.require_run(run_id)
        # The result comes first, then the present state, then what changes: one queue keeps the
        # order, and nothing is awaited in between.
        self._succeed(request)
        follower = self._hub.follow_run(
            run_id, request.fields, request.ranks, self._deliver(request.id)
        )
        if follower is not None:
            self._subscriptions[request.id] = follower
        if request.map is not None:
            followed = self._maps.follow(run_id, request.map, self._deliver(request.id))
            self._map_subscriptions[request.id] = followed

    def _unsubscribe(self, request: Unsubscribe) -> None:
        follower = self._subscriptions.pop(request.subscription, None)
        if follower is None:
            raise VramscopeError(NOT_FOUND, f"no subscription with the id {request.subscription}")
        self._hub.unfollow(follower)
        map_follower = self._map_subscriptions.pop(request.subscription, None)
        if map_follower is not None:
            self._maps.unfollow(map_follower)
        self._succeed(request)

    def _check_new(self, request_id: int) -> None:
        if request_id in self._subscriptions:
            raise VramscopeError(CONFLICT, f"expected a new id, got {request_id} a second time")
        if len(self._subscriptions) >= self._limits.live_subscriptions:
            raise VramscopeError(
                BAD_REQUEST,
                f"expected at most {self._limits.live_subscriptions} subscriptions a connection",
            )

    def _succeed(self, request: SubscribeRuns | SubscribeRun | Unsubscribe | Ping) -> None:
        self._put(encode_live(Result(request.id, ok=True)), None)

    def _deliver(self, subscription: int) -> Deliver:
        def deliver(payload: bytes, key: str | None) -> None:
            frame_key = None if key is None else f"{subscription} {key}"
            self._put(event_frame(subscription, payload), frame_key)

        return deliver
