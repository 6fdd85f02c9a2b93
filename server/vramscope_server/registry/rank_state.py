"""One rank of a run over all lives of its process. Pure."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from vramscope_protocol.columns import UNKNOWN
from vramscope_server.registry.lives import LifeOffset, kinds, life_offset, lives_payload
from vramscope_server.registry.step_pace import StepPace
from vramscope_server.rows import Rows
from vramscope_server.store.runs import StreamRecord

State = Literal["live", "ended", "lost"]


class RankState:
    """A rank: its streams, of which the newest is what it is now."""

    def __init__(self, number: int, first: StreamRecord) -> None:
        self.number = number
        self.streams: dict[str, StreamRecord] = {}
        self.newest = first
        """The life that registered last for the first time."""
        self.open_streams: set[str] = set()
        self.status: dict[str, Any] | None = None
        self.pace = StepPace()
        """Of the newest life, since this server hears it."""
        self.process_gone = False
        self.last_seen_ns = 0
        self.shown_state: State | None = None
        """State that was last told to the followers."""
        self._received_seq: dict[str, int] = {}
        self.add(first)

    @property
    def connected(self) -> bool:
        """Whether the newest life has a connection: an older one only delivers what it has left."""
        return self.newest.uid in self.open_streams

    def add(self, stream: StreamRecord) -> None:
        """A stream from the store. What was received in this server's life counts on: the store
        may be up to a commit behind."""
        known = self.streams.get(stream.uid)
        if known is not None:
            known.info = stream.info
            known.secret, known.owner = stream.secret, stream.owner
            return
        self.streams[stream.uid] = stream
        self._received_seq[stream.uid] = stream.last_seq
        if stream.stream_id > self.newest.stream_id:
            self.newest = stream
            self.status = None
            self.pace = StepPace()
        self.seen(stream.last_seen_ns)

    def seen(self, now_ns: int) -> None:
        """There was a word of this rank."""
        self.last_seen_ns = max(self.last_seen_ns, now_ns)

    def not_after(self, now_ns: int) -> None:
        """The clock was set back: what is in the future now would keep a silent rank live."""
        self.last_seen_ns = min(self.last_seen_ns, now_ns)

    def is_new(self, uid: str, seq: int, now_ns: int) -> bool:
        """Whether a durable message came for the first time."""
        self.seen(now_ns)
        if seq <= self._received_seq[uid]:
            return False
        self._received_seq[uid] = seq
        return True

    def take_rows(self, uid: str, rows: Rows, now_ns: int) -> None:
        """Count new rows of one life."""
        self.streams[uid].summary.take_rows(rows)
        step = int(rows.step[-1])
        if uid == self.newest.uid and step != UNKNOWN:
            self.pace.take(step, int(rows.time_ns[-1]), now_ns)

    @property
    def lives(self) -> list[StreamRecord]:
        """All of its streams, oldest first."""
        return sorted(self.streams.values(), key=lambda stream: stream.stream_id)

    def life_offset(self, uid: str) -> LifeOffset:
        """Which life a stream is, and what to add to its step numbers."""
        return life_offset(self.lives, uid)

    @property
    def restarts(self) -> int:
        """How often another process took this rank over."""
        # Asked of every rank of every run once a second, and nearly all have one life.
        return kinds(self.lives).count("restart") if len(self.streams) > 1 else 0

    @property
    def restarted_ns(self) -> int | None:
        """When the newest process began, if it is not the first."""
        if len(self.streams) == 1:
            return None
        lives = self.lives
        begun = [life for life, kind in zip(lives, kinds(lives), strict=True) if kind == "restart"]
        return (begun[-1].info.started_ns or begun[-1].created_ns) if begun else None

    @property
    def step(self) -> int | None:
        """Optimizer steps finished."""
        return self.newest.summary.step

    @property
    def used_bytes(self) -> int | None:
        """Memory in use on the device, by every process."""
        return self.newest.summary.used_bytes

    @property
    def peak_reserved_bytes(self) -> int | None:
        """Most that PyTorch ever held in any life of this rank."""
        peaks = [stream.summary.peak_reserved_bytes for stream in self.streams.values()]
        return max((peak for peak in peaks if peak is not None), default=None)

    @property
    def device_name(self) -> str | None:
        """Name of the current device."""
        devices = self.newest.info.devices
        return devices[0].name if devices else None

    @property
    def device_total_bytes(self) -> int | None:
        """Memory of the current device."""
        devices = self.newest.info.devices
        total = devices[0].total_bytes if devices else None
        return total if total is not None else self.newest.summary.total_bytes

    def payload(self, state: State) -> dict[str, Any]:
        """As the REST API has it."""
        newest = self.newest
        losses: dict[str, int] = {}
        steps_lost = 0
        for stream in self.streams.values():
            for reason, count in stream.summary.samples.lost_by_reason().items():
                losses[reason] = losses.get(reason, 0) + count
            steps_lost += sum(stream.summary.steps.lost_by_reason().values())
        info = newest.info
        lives = self.lives
        ways = kinds(lives)
        return {
            "rank": self.number,
            "host": info.host,
            "pid": info.pid,
            "local_rank": info.local_rank,
            "state": state,
            "connected": self.connected,
            "started_ns": info.started_ns or newest.created_ns,
            "ended_ns": newest.ended_ns,
            "last_seen_ns": self.last_seen_ns,
            "exit_code": newest.exit_code,
            "end_reason": newest.end_reason,
            "end_text": newest.end_text,
            "devices": [msgspec.structs.asdict(device) for device in info.devices],
            "device_uuid": info.devices[0].uuid if info.devices else None,
            "device_name": self.device_name,
            "device_total_bytes": self.device_total_bytes,
            "software": info.software,
            "allow": info.allow,
            "commands": info.commands,
            "user_commands": msgspec.to_builtins(info.user_commands),
            "steps_from_start": info.steps_from_start,
            "stream": newest.uid,
            "restarts": ways.count("restart"),
            "reattaches": ways.count("attach"),
            "lives": lives_payload(lives),
            "restart_count": info.restart_count,
            "max_restarts": info.max_restarts,
            "process_started_ns": info.process_started_ns or None,
            "launcher": info.launcher,
            "job": info.job,
            "node_rank": info.node_rank,
            "samples_received": sum(s.summary.samples.received for s in self.streams.values()),
            "samples_lost": sum(losses.values()),
            "losses": losses,
            "steps_received": sum(s.summary.steps.received for s in self.streams.values()),
            "steps_lost": steps_lost,
            "step": self.step,
            "status": self.status,
        }
