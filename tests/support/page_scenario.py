"""Generated training jobs for tests of the page: what a run looked like at any moment.

Everything follows from the step number and a seed, so two readers of the same range always see the
same rows. Nothing here is shipped or shown outside of tests.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.page_account import account_columns, account_status
from tests.support.page_devices import second_columns, second_device
from tests.support.page_lives import begins, life_of, lives, lost_ns
from tests.support.page_rows import Floats, binned, hash_text, to_json
from vramscope_protocol.command_table import COMMANDS

GIB = 1 << 30


@dataclass
class Scenario:
    """One run. Sizes in GiB here, in bytes everywhere outside of this class."""

    name: str
    state: str = "live"
    world_size: int = 1
    step_s: float = 0.468
    age_s: float = 2250.0
    silent_s: float = 0.0
    limit_gib: float = 139.8
    static_gib: float = 89.8
    activations_gib: float = 18.8
    spread_gib: float = 0.4
    growth_gib: float = 0.0
    context_gib: float | None = 1.6
    reserved_gib: float = 112.0
    stranded_gib: float = 0.9
    device_name: str = "NVIDIA H200"
    emulated: bool = False
    exit_code: int | None = None
    end_text: str | None = None
    allow: str = "control"
    accepts: tuple[str, ...] = tuple(COMMANDS)
    user_commands: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Commands that the job itself declares, alike on all ranks."""
    samples_lost: int = 0
    gap_s: tuple[float, float] | None = None
    """Seconds before now in which samples are missing."""
    worst_rank: int | None = None
    restarted_ago_s: tuple[float, ...] = ()
    """Seconds before now at which new processes took over, oldest first."""
    restarted_ranks: tuple[int, ...] | None = None
    """Which ranks; None is all."""
    lost_ranks: tuple[int, ...] = ()
    lost_ago_s: float = 120.0
    max_restarts: int = 0
    tells_phases: bool = False
    tells_account: bool = False
    """Exact peaks, parts of steps, categories, and what the cache consists of."""
    keeps_gradients: bool = True
    others_gib: float = 0.0
    driver_gib: float = 0.0
    second_gib: float = 0.0
    """What each process holds on a second device; 0: there is none."""
    user: str = "ada"
    created_s: float = field(default_factory=time.time)
    freed_steps: list[int] = field(default_factory=list[int])
    commands: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    running: dict[int, Floats] = field(default_factory=dict[int, Floats])
    extra_events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    findings: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    judged: bool = True
    """Whether the server has looked for findings."""
    ooms: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    snapshots: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def id(self) -> str:
        """Twelve hex digits, stable for the name."""
        return f"{abs(hash_text(self.name)) & (2**48 - 1):012x}"

    @property
    def started_ns(self) -> int:
        return int((self.created_s - self.age_s) * 1e9)

    @property
    def end_ns(self) -> int:
        """Time of the last row that exists now."""
        now_s = time.time() if self.state == "live" and self.silent_s == 0 else self.created_s
        return int((now_s - self.silent_s) * 1e9)

    def last_step(self, time_ns: int | None = None) -> int:
        elapsed_s = ((time_ns or self.end_ns) - self.started_ns) / 1e9
        return max(0, int(elapsed_s / self.step_s))

    # ------------------------------------------------------------------ numbers

    def peaks(self, steps: NDArray[np.int64], rank: int) -> Floats:
        """Activations at the peak of each step, GiB."""
        noise = np.abs(np.sin(steps * 12.9898 + rank * 78.233) * 43758.5453) % 1.0
        peak = self.activations_gib - self.spread_gib * noise**6
        evaluating = (steps % 500 >= 460) & (steps > 400)
        offset = (
            0.06 * self.limit_gib * (((rank * 37) % 17) / 17 - 0.5) if self.world_size > 1 else 0.0
        )
        peak = np.where(evaluating, peak * 0.36, peak) - offset
        if rank == self.worst_rank:
            peak = peak + np.clip((steps - 400) * 0.006, 0, 14.0)
        return np.asarray(np.maximum(0.1, peak))

    def kept(self, steps: NDArray[np.int64]) -> Floats:
        warm = np.clip(steps / 6.0, 0.34, 1.0)
        return np.asarray(self.static_gib * warm + self.growth_gib * np.maximum(0, steps - 310))

    def columns(self, steps: NDArray[np.int64], phase: Floats, rank: int) -> dict[str, Floats]:
        """Counters at a phase in [0, 1] of each step; 1 is the end of the step."""
        peak = self.peaks(steps, rank)
        kept = self.kept(steps)
        rise = np.where(phase < 0.4, phase / 0.4, np.maximum(0.0, (0.92 - phase) / 0.52))
        need = kept + peak + self.stranded_gib
        reserved = np.maximum(
            self.reserved_gib - (self.static_gib - np.minimum(kept, self.static_gib)),
            np.ceil(need / 2) * 2,
        )
        full = reserved
        for freed in self.freed_steps:
            reserved = np.where(steps > freed, need + 0.1, reserved)
            reserved = np.where((steps == freed) & (phase >= 1), kept + self.stranded_gib, reserved)
        most_reserved = self.limit_gib - (self.context_gib or 0) - self.others_gib - 0.2
        reserved = np.minimum(reserved, most_reserved)
        allocated = kept + peak * rise
        highest = self.running_peaks(int(steps.max(initial=0)), rank)[steps]
        highest_reserved = np.maximum(reserved, np.minimum(full, most_reserved))
        free_part = np.maximum(0.0, reserved - allocated)
        context = np.nan if self.context_gib is None else self.context_gib
        used = reserved + context + self.others_gib
        columns = {
            "allocated_bytes.all.current": allocated * GIB,
            "allocated_bytes.all.peak": highest * GIB,
            "active_bytes.all.current": allocated * GIB,
            "active_bytes.all.peak": highest * GIB,
            "reserved_bytes.all.current": reserved * GIB,
            "reserved_bytes.all.peak": highest_reserved * GIB,
            "inactive_split_bytes.all.current": np.minimum(free_part, self.stranded_gib) * GIB,
            "device.total_bytes": np.full(len(steps), self.limit_gib * GIB),
            "device.used_bytes": used * GIB,
            "device.free_bytes": np.maximum(0.0, self.limit_gib - used - self.driver_gib) * GIB,
            "device.process_bytes": (reserved + context) * GIB,
            "device.other_bytes": np.where(np.isnan(context), np.nan, self.others_gib * GIB)
            * np.ones(len(steps)),
            "num_device_alloc": 120.0
            + np.minimum(steps, 300) // 60 * 3
            + 46.0 * np.searchsorted(np.array(self.freed_steps), steps),
            "num_alloc_retries": np.zeros(len(steps)),
            "step.duration_us": self.durations_us(steps),
            "step": steps.astype(np.float64),
        }
        more = account_columns(self, steps, rank, columns) if self.tells_account else {}
        return columns | more | (second_columns(self, steps) if self.second_gib else {})

    def running_peaks(self, last: int, rank: int) -> Floats:
        """PyTorch's peak at the end of each step: the highest since the start, GiB."""
        known = self.running.get(rank)
        if known is None or len(known) <= last:
            steps = np.arange(last + 5000, dtype=np.int64)
            known = np.maximum.accumulate(self.kept(steps) + self.peaks(steps, rank))
            self.running[rank] = known
        return known

    def durations_us(self, steps: NDArray[np.int64]) -> Floats:
        noise = np.abs(np.sin(steps * 4.1414) * 24634.6345) % 1.0
        evaluating = (steps % 500 >= 460) & (steps > 400)
        return np.asarray(np.where(evaluating, 0.52, 1.0 + 0.05 * noise) * self.step_s * 1e6)

    # ------------------------------------------------------------------ REST

    def step_rows(
        self, first: int, last: int, rank: int, points: int | None = None, life: int | None = None
    ) -> dict[str, Any]:
        """Rows of ``steps``; with ``points`` the row with the highest peak of each bin.

        ``first`` and ``last`` are places on the axis; numbers of the steps where ``life`` is given.
        """
        starts = begins(self, rank)
        last_place = self.last_step(lost_ns(self, rank))
        if life is not None:
            stop = starts[life + 1] if life + 1 < len(starts) else last_place
            first, last = max(1, first) + starts[life], min(last + starts[life], stop)
        last = min(last, last_place)
        first = max(1, first)
        steps = np.arange(first, last + 1, dtype=np.int64)
        if points is not None and len(steps) > points:
            bins = np.array_split(steps, points)
            steps = np.array(
                [one[int(np.argmax(self.peaks(one, rank) + self.kept(one)))] for one in bins],
                dtype=np.int64,
            )
        columns = self.columns(steps, np.ones(len(steps)), rank)
        time_ns = self.started_ns + (steps * self.step_s * 1e9).astype(np.int64)
        columns.pop("step")
        of_life = life_of(self, steps, rank)
        return {
            "step": (steps - np.array(starts, dtype=np.int64)[of_life]).tolist(),
            "time_ns": time_ns.tolist(),
            "life": of_life.tolist(),
            "step_offsets": starts,
            "columns": {name: to_json(values) for name, values in columns.items()},
        }

    def samples(self, from_ns: int, to_ns: int, rank: int, every_ticks: int = 1) -> dict[str, Any]:
        """Raw samples at 10 Hz in a half-open range."""
        start = max(0, -(-(from_ns - self.started_ns) // 100_000_000))
        newest_ns = lost_ns(self, rank) or self.end_ns
        end = max(start, -(-(min(to_ns, newest_ns) - self.started_ns) // 100_000_000))
        time_ns = self.started_ns + np.arange(start, end, every_ticks, dtype=np.int64) * 100_000_000
        if self.gap_s is not None:
            ago_s = self.created_s - time_ns / 1e9
            time_ns = time_ns[(ago_s < self.gap_s[1]) | (ago_s > self.gap_s[0])]
        position = (time_ns - self.started_ns) / 1e9 / self.step_s
        steps = position.astype(np.int64)
        columns = self.columns(steps, position - steps, rank)
        starts = np.array(begins(self, rank), dtype=np.int64)
        columns["step"] = (steps - starts[life_of(self, steps, rank)]).astype(np.float64)
        if self.tells_phases:
            columns["phase"] = ((steps % 500 >= 460) & (steps > 400)).astype(np.float64)
        return {"time_ns": time_ns, "columns": columns}

    def series(
        self, fields: list[str], rank: int, start_ns: int | None, end_ns: int | None, points: int
    ) -> dict[str, Any]:
        """The body of ``series``: raw where it fits into ``points``, else bins of 1, 10 or 60 s."""
        start = max(self.started_ns, start_ns or 0)
        end = min(self.end_ns, end_ns or self.end_ns)
        seconds = max(0.0, (end - start) / 1e9)
        if seconds * 10 <= points:
            raw = self.samples(start, end + 1, rank)
            unknown = np.full(len(raw["time_ns"]), np.nan)
            values = {name: to_json(raw["columns"].get(name, unknown)) for name in fields}
            same = {name: dict.fromkeys(("min", "mean", "max"), values[name]) for name in fields}
            return {
                "resolution_ms": 0,
                "time_ns": raw["time_ns"].tolist(),
                "columns": same,
                "rank": rank,
            }
        width_s = next((w for w in (1, 10, 60) if seconds / w <= points), 60)
        raw = self.samples(start, end + 1, rank, every_ticks=max(1, width_s * 10 // 12))
        bins = (raw["time_ns"] - self.started_ns) // (width_s * 1_000_000_000)
        edges = np.flatnonzero(np.r_[True, np.diff(bins) > 0])
        unknown = np.full(len(raw["time_ns"]), np.nan)
        columns = {name: binned(raw["columns"].get(name, unknown), edges) for name in fields}
        time_ns = self.started_ns + bins[edges] * width_s * 1_000_000_000
        return {
            "resolution_ms": width_s * 1000,
            "time_ns": time_ns.tolist(),
            "columns": columns,
            "rank": rank,
        }

    def run(self, *, with_ranks: bool) -> dict[str, Any]:
        """The run object of the REST API."""
        step = self.last_step()
        number = max(step - begins(self, rank)[-1] for rank in range(self.world_size))
        now = self.columns(np.array([step]), np.array([1.0]), self.worst_rank or 0)
        ended = self.state == "ended"
        run: dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "state": self.state,
            "started_ns": self.started_ns,
            "ended_ns": self.end_ns if ended else None,
            "last_seen_ns": self.end_ns,
            "world_size": self.world_size,
            "emulated": self.emulated,
            "user": self.user,
            "script": "train.py",
            "device_name": "emulated" if self.emulated else self.device_name,
            "device_total_bytes": int(self.limit_gib * GIB),
            "step": number,
            "peak_reserved_bytes": int(now["reserved_bytes.all.peak"][0]),
            "used_bytes": None if self.context_gib is None else int(now["device.used_bytes"][0]),
            "ranks_connected": self.world_size - len(self.lost_ranks)
            if self.state == "live" and self.silent_s == 0
            else 0,
            "ranks_live": self.world_size - len(self.lost_ranks) if self.state == "live" else 0,
            "ranks_lost": len(self.lost_ranks) if self.state == "live" else 0,
            "restarts": len(self.restarted_ago_s),
            "restarted_ns": int((self.created_s - self.restarted_ago_s[-1]) * 1e9)
            if self.restarted_ago_s
            else None,
            "fullest_rank": self.worst_rank or 0,
            "exit_code": self.exit_code if ended else None,
        }
        if with_ranks:
            run["ranks"] = [self.rank(rank) for rank in range(self.world_size)]
        return run

    def rank(self, rank: int) -> dict[str, Any]:
        ended = self.state == "ended"
        device = {
            "index": rank % 8,
            "name": "emulated" if self.emulated else self.device_name,
            "uuid": f"GPU-{rank:08x}",
            "total_bytes": int(self.limit_gib * GIB),
            "emulated": self.emulated,
        }
        failed = self.exit_code not in (0, None)
        is_lost = rank in self.lost_ranks
        mine = lives(self, rank)
        return {
            "rank": rank,
            "host": f"node{rank // 8}",
            "pid": mine[-1]["pid"],
            "local_rank": rank % 8,
            "state": "lost" if is_lost else self.state,
            "connected": self.state == "live" and self.silent_s == 0 and not is_lost,
            "started_ns": self.started_ns,
            "ended_ns": self.end_ns if ended else None,
            "last_seen_ns": lost_ns(self, rank) or self.end_ns,
            "exit_code": self.exit_code if ended else None,
            "end_reason": ("exception" if failed else "exit") if ended else None,
            "end_text": self.end_text,
            "devices": [device, *([second_device()] if self.second_gib else [])],
            "device_uuid": device["uuid"],
            "device_name": device["name"],
            "device_total_bytes": device["total_bytes"],
            "software": {
                "vramscope": "0.1.0",
                "python": "3.11.7",
                "torch": "2.13.0",
                "cuda": "12.8",
                "driver": "570.86",
            },
            "allow": self.allow,
            "commands": [*self.accepts, *(one["name"] for one in self.user_commands)],
            "user_commands": self.user_commands,
            "stream": mine[-1]["stream"],
            "restarts": len(mine) - 1,
            "reattaches": 0,
            "lives": mine,
            "restart_count": len(mine) - 1,
            "max_restarts": self.max_restarts,
            "process_started_ns": mine[-1]["started_ns"],
            "launcher": "torchrun" if self.world_size > 1 else "",
            "job": "",
            "node_rank": None,
            "samples_received": int(self.age_s * 10),
            "samples_lost": self.samples_lost,
            "losses": {"spool full": self.samples_lost} if self.samples_lost else {},
            "steps_received": self.last_step(),
            "step": mine[-1]["last_step"],
            "status": {"rate_hz": 10.0, "cost_fraction": 0.0004}
            | (account_status(self, mine[-1]["pid"]) if self.tells_account else {}),
        }

    def events(self) -> list[dict[str, Any]]:
        first: dict[str, Any] = {
            "time_ns": self.started_ns,
            "rank": 0,
            "step": 0,
            "kind": "attach",
            "text": "Attached to python train.py",
            "data": {},
        }
        return [first, *self.extra_events]
