"""Who follows what: every event is encoded once and handed to each follower's queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from vramscope_server.live import payload
from vramscope_server.live.pacer import Pacer
from vramscope_server.registry.lives import LifeOffset
from vramscope_server.rows import Rows
from vramscope_server.settings import Limits

Deliver = Callable[[bytes, str | None], None]
"""Takes one encoded payload. With a key, a payload that still waits under the same key is
replaced: both say how things are, and the older one is no longer true."""


class RunReader(Protocol):
    """What the hub reads of the registry, at once and on the event loop."""

    def runs(self) -> list[dict[str, Any]]:
        """Every run, newest first."""
        ...

    def run(self, run_id: str) -> dict[str, Any] | None:
        """One run with its ranks."""
        ...


class EvidenceTaker(Protocol):
    """Who judges what comes. Called on the event loop; must neither block nor raise."""

    def take_samples(self, run_id: str, rank: int, rows: Rows) -> None:
        """New samples."""
        ...

    def take_steps(self, run_id: str, rank: int, rows: Rows, life: LifeOffset) -> None:
        """New steps."""
        ...

    def take_event(self, run_id: str, event: dict[str, Any]) -> None:
        """Something happened."""
        ...

    def take_status(self, run_id: str, rank: int, status: dict[str, Any]) -> None:
        """What an agent says of itself."""
        ...

    def take_command(self, run_id: str, command: dict[str, Any]) -> None:
        """A command has changed."""
        ...

    def take_snapshot(self, run_id: str, snapshot: dict[str, Any]) -> None:
        """A snapshot has changed."""
        ...


@dataclass(eq=False)
class RunFollower:
    """One subscription to one run."""

    run_id: str
    fields: tuple[str, ...]
    ranks: frozenset[int] | None
    deliver: Deliver


@dataclass(eq=False)
class RunListFollower:
    """One subscription to the list of runs."""

    deliver: Deliver


@dataclass
class _Audience:
    """The followers of one run and the pace at which they hear of its state."""

    pacer: Pacer
    followers: list[RunFollower] = field(default_factory=list[RunFollower])


class Hub:
    """Fans out what ingest receives. Lives on the event loop; nothing here waits or blocks."""

    def __init__(self, registry: RunReader, limits: Limits) -> None:
        self._registry = registry
        self._limits = limits
        self._audiences: dict[str, _Audience] = {}
        self._list_followers: list[RunListFollower] = []
        self._status_takers: list[Callable[[str, int, dict[str, Any]], None]] = []
        self._evidence_takers: list[EvidenceTaker] = []
        self._event_takers: list[Callable[[str, dict[str, Any]], None]] = []
        self._list_pacer = Pacer(limits.run_list_interval_s, self._publish_runs)

    def follow_runs(self, deliver: Deliver) -> RunListFollower:
        """Follow the list of runs; the present list is delivered before this returns."""
        follower = RunListFollower(deliver)
        # Nothing may be awaited between reading the state and joining: what changed in between
        # would never be told.
        deliver(payload.runs_payload(self._registry.runs()), "runs")
        self._list_followers.append(follower)
        return follower

    def follow_run(
        self,
        run_id: str,
        fields: Iterable[str],
        ranks: Iterable[int] | None,
        deliver: Deliver,
    ) -> RunFollower | None:
        """Follow one run; its present state is delivered before this returns. None if unknown."""
        run = self._registry.run(run_id)
        if run is None:
            return None
        follower = RunFollower(
            run_id,
            tuple(dict.fromkeys(fields)),
            None if ranks is None else frozenset(ranks),
            deliver,
        )
        deliver(payload.run_payload(run), "run")
        audience = self._audiences.get(run_id)
        if audience is None:
            pacer = Pacer(self._limits.run_interval_s, lambda: self._publish_run(run_id))
            audience = self._audiences[run_id] = _Audience(pacer)
        audience.followers.append(follower)
        return follower

    def unfollow(self, follower: RunFollower | RunListFollower) -> None:
        """End a subscription. Ending it twice is harmless."""
        if isinstance(follower, RunListFollower):
            if follower in self._list_followers:
                self._list_followers.remove(follower)
            return
        audience = self._audiences.get(follower.run_id)
        if audience is None or follower not in audience.followers:
            return
        audience.followers.remove(follower)
        if not audience.followers:
            audience.pacer.cancel()
            del self._audiences[follower.run_id]

    def publish_samples(self, run_id: str, rank: int, rows: Rows) -> None:
        """Hand rows of samples on."""
        for taker in self._evidence_takers:
            taker.take_samples(run_id, rank, rows)
        self._publish_rows(run_id, rank, rows, payload.samples_payload)

    def publish_steps(self, run_id: str, rank: int, rows: Rows, life: LifeOffset) -> None:
        """Hand rows of steps of one life on."""
        for taker in self._evidence_takers:
            taker.take_steps(run_id, rank, rows, life)
        self._publish_rows(run_id, rank, rows, partial(payload.steps_payload, life=life))

    def publish_event(self, run_id: str, event: dict[str, Any]) -> None:
        """Hand an event on."""
        for taker in self._evidence_takers:
            taker.take_event(run_id, event)
        for take in self._event_takers:
            take(run_id, event)
        if run_id in self._audiences:
            self._publish(run_id, payload.event_payload(event), None)

    def publish_command(self, run_id: str, command: dict[str, Any]) -> None:
        """Hand the present state of a command on."""
        for taker in self._evidence_takers:
            taker.take_command(run_id, command)
        if run_id in self._audiences:
            self._publish(run_id, payload.command_payload(command), f"command {command['id']}")

    def follow_statuses(self, take: Callable[[str, int, dict[str, Any]], None]) -> None:
        """Hand the status of every agent of every run to ``take`` as well, from now on."""
        self._status_takers.append(take)

    def follow_events(self, take: Callable[[str, dict[str, Any]], None]) -> None:
        """Hand every event of every run to ``take`` as well, from now on."""
        self._event_takers.append(take)

    def follow_evidence(self, taker: EvidenceTaker) -> None:
        """Hand whatever comes of every run to ``taker`` as well, from now on."""
        self._evidence_takers.append(taker)
        self.follow_statuses(taker.take_status)

    def publish_snapshot(self, run_id: str, snapshot: dict[str, Any]) -> None:
        """Hand the present state of a snapshot on."""
        for taker in self._evidence_takers:
            taker.take_snapshot(run_id, snapshot)
        if run_id in self._audiences:
            key = f"snapshot {snapshot['id']}"
            self._publish(run_id, payload.snapshot_payload(snapshot), key)

    def publish_oom(self, run_id: str, oom: dict[str, Any]) -> None:
        """Hand a row of the list of times out of memory on."""
        if run_id in self._audiences:
            self._publish(run_id, payload.oom_payload(oom), f"oom {oom['id']}")

    def publish_status(self, run_id: str, rank: int, status: dict[str, Any]) -> None:
        """Hand the status of one rank's agent on."""
        for take in self._status_takers:
            take(run_id, rank, status)
        if run_id in self._audiences:
            self._publish(run_id, payload.status_payload(rank, status), f"status {rank}")

    def publish_finding(self, run_id: str, finding: dict[str, Any]) -> None:
        """Hand the present state of a finding on."""
        if run_id in self._audiences:
            self._publish(run_id, payload.finding_payload(finding), f"finding {finding['id']}")

    def run_changed(self, run_id: str) -> None:
        """Say that a run is not what it was; followers hear of it at their pace."""
        audience = self._audiences.get(run_id)
        if audience is not None:
            audience.pacer.request()
        if self._list_followers:
            self._list_pacer.request()

    def close(self) -> None:
        """Stop the timers; what is published after this still goes out, but paced news does not."""
        self._list_pacer.cancel()
        for audience in self._audiences.values():
            audience.pacer.cancel()

    def _publish_rows(
        self,
        run_id: str,
        rank: int,
        rows: Rows,
        encode: Callable[[int, Rows, tuple[str, ...]], bytes],
    ) -> None:
        audience = self._audiences.get(run_id)
        if audience is None:
            return
        encoded: dict[tuple[str, ...], bytes] = {}
        for follower in tuple(audience.followers):
            if follower.ranks is not None and rank not in follower.ranks:
                continue
            body = encoded.get(follower.fields)
            if body is None:
                body = encoded[follower.fields] = encode(rank, rows, follower.fields)
            follower.deliver(body, None)

    def _publish(self, run_id: str, body: bytes, key: str | None) -> None:
        # A copy, because a follower whose queue is full may leave while it is being served.
        for follower in tuple(self._audiences[run_id].followers):
            follower.deliver(body, key)

    def _publish_runs(self) -> None:
        body = payload.runs_payload(self._registry.runs())
        for follower in tuple(self._list_followers):
            follower.deliver(body, "runs")

    def _publish_run(self, run_id: str) -> None:
        run = self._registry.run(run_id)
        if run is not None and run_id in self._audiences:
            self._publish(run_id, payload.run_payload(run), "run")
