"""When the segments are looked at, and what is known of them since."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, structs

from vramscope.collectors.self_cost import CpuMeter, SelfCost
from vramscope.commands.cache_plan import CachePlan
from vramscope.commands.call import Answer, Call, Handler
from vramscope.devices.device import Device
from vramscope.guard import guarded
from vramscope.memory_map.look import Look, Looks
from vramscope.memory_map.owners import OwnersSource, no_owners
from vramscope.memory_map.pace import WATCHED_FRACTION, WATCHED_INTERVAL_S, MapPace
from vramscope.notices import Notices
from vramscope.sampling.clock import Clock
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.commands import Receipt
from vramscope_protocol.parameters import MAX_WATCH_S

_PATIENCE_S: Final = 1.0
"""How long a look waits for a step end; a job whose steps are further apart is not waited for."""
_GIVEN_UP_S: Final = 10.0
"""A look that the training thread began and never handed over is taken anew."""

NAMES: Final = (
    "cache.returnable_bytes",
    "cache.stranded_bytes",
    "cache.private_pool_bytes",
    "cache.largest_free_bytes",
)


class _Raw(Struct):
    """Segments as PyTorch told them, on their way to the sampler thread."""

    segments: list[dict[str, Any]]
    time_ns: int
    step: int
    is_step_end: bool
    took_ns: int


class MemoryMap:
    """Looks at the segments of one device: often while somebody watches, else now and then.

    The sampler thread says when, with :meth:`tick`. If steps follow each other closely, the
    training thread takes the list at the end of one, so that every look shows the same moment of
    a step; the sampler thread does the rest. Is a ``Collector`` of the samples' ``cache.*``.

    Args:
        device: whose segments.
        clock: for times and intervals.
        notices: told when the pace is held back, and why there is no map.
        self_cost: counts what looking costs.
        current_step: optimizer steps finished.
    """

    def __init__(
        self,
        device: Device,
        *,
        clock: Clock,
        notices: Notices,
        self_cost: SelfCost,
        current_step: Callable[[], int],
        pace: MapPace | None = None,
    ) -> None:
        self._device = device
        self._clock = clock
        self._notices = notices
        self._self_cost = self_cost
        self._current_step = current_step
        self.pace = pace or MapPace()
        self.owners: OwnersSource = no_owners
        """Who knows which tensor lies where."""
        self.latest: Look | None = None
        """The newest look; any thread may read it."""
        self.limit_bytes: int | None = None
        self.device_free_bytes: int | None = None
        self.spent_ns = 0
        """CPU time of the sampler thread so far."""
        self._looks = Looks()
        self._values = (UNKNOWN,) * len(NAMES)
        self._watched_until_ns = 0
        self._is_asked = False
        self._next_ns = clock.monotonic_ns()
        # Holds one entry while the training thread is to take the next look: whoever pops it does.
        self._wanted: list[bool] = []
        self._wanted_since_ns: int | None = None
        self._last_boundary_ns: int | None = None
        self._raw: _Raw | None = None

    # ---------------------------------------------------------------------- any thread

    def watch(self, seconds: float, *, ask: bool = False) -> None:
        """Somebody looks for so long; ``ask`` wants one look even where there is no rate."""
        until_ns = self._clock.monotonic_ns() + round(min(max(0.0, seconds), MAX_WATCH_S) * 1e9)
        self._watched_until_ns = max(self._watched_until_ns, until_ns)
        if ask:
            self._is_asked = True

    @property
    def is_watched(self) -> bool:
        """Whether somebody looks now."""
        return self._clock.monotonic_ns() < self._watched_until_ns

    @property
    def rate_hz(self) -> float:
        """Looks a second while somebody watches; 0 is on request only."""
        interval_s = self.pace.interval_s(is_watched=True)
        return 0.0 if interval_s is None else 1 / interval_s

    def handlers(self) -> Mapping[str, Handler]:
        """The command that keeps the map watched."""
        return {"watch_map": self._watch_map}

    # -------------------------------------------------------------- on the training thread

    @property
    def wanted(self) -> tuple[object, ...]:
        """What is not empty while a look is to be taken at the next end of a step."""
        return (self._wanted,)

    @property
    def goes_on(self) -> bool:
        """Whether there is more to do than that: not at each end of a step."""
        return False

    def at_boundary(self, step: int) -> None:
        """A step has ended: take the look that is wanted, if one is."""
        self._last_boundary_ns = self._clock.monotonic_ns()
        if not self._wanted:
            return
        with guarded("memory map"), self._self_cost.part("map at step ends"):
            # 2.6 shows only the pool that is in use on this thread.
            is_busy = self._device.busy_reason() is not None
            if not is_busy and self._device.why_no_segments() is None and _claim(self._wanted):
                self._raw = self._read(step, is_step_end=True)

    # --------------------------------------------------------------- on the sampler thread

    @property
    def names(self) -> tuple[str, ...]:
        """Series of the samples that this knows."""
        return NAMES

    def read(self) -> tuple[int, ...]:
        """Their values as of the last look."""
        return self._values

    def tick(self) -> None:
        """Look if a look is due; once a turn of the sampler."""
        now_ns = self._clock.monotonic_ns()
        raw, self._raw = self._raw, None
        if raw is None:
            if not self._is_due(now_ns):
                return
            why_not = self._why_not()
            if why_not is not None:
                self._take_nothing(why_not, now_ns)
                return
            raw = self._read_here(now_ns)
        if raw is not None:
            self._take(raw, now_ns)

    def _is_due(self, now_ns: int) -> bool:
        return self._is_asked or self._wanted_since_ns is not None or now_ns >= self._next_ns

    def _why_not(self) -> str | None:
        why_not = self._device.why_no_segments()
        if why_not is not None or self.pace.cost_ns is not None or self._is_asked:
            return why_not
        stats = self._device.memory_stats()
        blocks = _block_count(stats)
        if self.pace.may_try(blocks):
            return None
        return f"{blocks:,} blocks are looked at on request only"

    def _read_here(self, now_ns: int) -> _Raw | None:
        """Read the segments on this thread, unless the training thread soon will."""
        if self._wanted_since_ns is None and self._is_stepping(now_ns):
            self._wanted_since_ns = now_ns
            self._wanted.append(True)
            return None
        if self._wanted_since_ns is not None:
            waited_s = (now_ns - self._wanted_since_ns) / 1e9
            if waited_s < _PATIENCE_S or (waited_s < _GIVEN_UP_S and not self._wanted):
                return None
            if not _claim(self._wanted) and waited_s < _GIVEN_UP_S:
                return None  # the training thread has just begun
        return self._read(self._current_step(), is_step_end=False)

    def _is_stepping(self, now_ns: int) -> bool:
        last_ns = self._last_boundary_ns
        return last_ns is not None and now_ns - last_ns < _PATIENCE_S * 1e9

    def _read(self, step: int, *, is_step_end: bool) -> _Raw:
        meter = CpuMeter()
        start_ns = self._clock.monotonic_ns()
        time_ns = self._clock.time_ns()
        segments = self._device.segments()
        # The GIL is held all the while, also in a wait for the allocator. Not so by an emulated
        # device: slow there is only a busy machine.
        took_ns = self._clock.monotonic_ns() - start_ns
        if self._device.info.emulated:
            took_ns = min(took_ns, meter.end())
        return _Raw(segments, time_ns, step, is_step_end, took_ns)

    def _take(self, raw: _Raw, now_ns: int) -> None:
        with self._self_cost.part("map", within="sampler"):
            meter = CpuMeter()
            segments, raw.segments = raw.segments, []
            look = self._looks.take(
                segments, time_ns=raw.time_ns, step=raw.step, is_step_end=raw.is_step_end
            )
            self._values = _values(look)
            if self.is_watched:
                self._look_around()
            del segments  # freeing the list is a part of what it costs
            cpu_ns = meter.end()
        self.spent_ns += cpu_ns + (0 if raw.is_step_end else raw.took_ns)
        took_ns = raw.took_ns + cpu_ns
        self.pace.account_look(took_ns)
        self.latest = structs.replace(look, took_ns=took_ns)
        self._notices.clear("map")
        self._looked(now_ns)

    def _take_nothing(self, why_not: str, now_ns: int) -> None:
        self._values = (UNKNOWN,) * len(NAMES)
        last = self.latest
        if last is None or last.why_not != why_not:
            time_ns = self._clock.time_ns()
            self.latest = Look(time_ns, None, False, time_ns, {}, why_not=why_not)
            self._looks = Looks()
        self._looked(now_ns)

    def _look_around(self) -> None:
        info = self._device.info
        self.limit_bytes = info.total_bytes if info.limit_bytes is None else info.limit_bytes
        free_bytes = self._device.device_memory().free_bytes
        self.device_free_bytes = None if free_bytes == UNKNOWN else free_bytes

    def _looked(self, now_ns: int) -> None:
        self._is_asked = False
        self._wanted.clear()
        self._wanted_since_ns = None
        is_watched = self.is_watched
        interval_s = self.pace.interval_s(is_watched=is_watched)
        # Without a rate: looked at again when somebody asks, or comes to watch.
        self._next_ns = 2**63 if interval_s is None else now_ns + round(interval_s * 1e9)
        self._tell_pace(interval_s, is_watched=is_watched)

    def _tell_pace(self, interval_s: float | None, *, is_watched: bool) -> None:
        if not is_watched and interval_s is not None:
            self._notices.clear("map_pace")
        elif interval_s is None:
            blocks = 0 if self.latest is None else self.latest.block_count
            self._notices.note(
                "map_pace", f"the memory map is read on request only: it has {blocks:,} blocks"
            )
        elif interval_s > WATCHED_INTERVAL_S:
            share = f"{WATCHED_FRACTION:.2%} of a core"
            self._notices.note(
                "map_pace",
                f"the memory map is read every {interval_s:.1f} s, to stay within {share}",
            )
        else:
            self._notices.clear("map_pace")

    def _watch_map(self, call: Call) -> Answer:
        self.watch(call.params.seconds, ask=True)
        why_not = self._device.why_no_segments()
        if why_not is not None:
            return Receipt("done", message=f"There is no map now: {why_not}.")
        return Receipt("done", message=f"The map is sent for {call.params.seconds:g} s.")


def _claim(wanted: list[bool]) -> bool:
    try:
        wanted.pop()
    except IndexError:
        return False
    return True


def _values(look: Look) -> tuple[int, ...]:
    plans: list[CachePlan] = [state.plan for state in look.segments.values()]
    return (
        sum(plan.returnable_bytes for plan in plans),
        sum(plan.stranded_bytes for plan in plans),
        sum(plan.private_pool_bytes for plan in plans),
        max((state.largest_free_bytes for state in look.segments.values()), default=0),
    )


def _block_count(stats: Mapping[str, Any] | None) -> int:
    try:
        return int(stats["active"]["all"]["current"]) if stats else 0
    except (KeyError, TypeError):
        return 0
