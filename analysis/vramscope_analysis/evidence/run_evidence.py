"""Everything that is known of a run at one time: what its judges may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from vramscope_analysis.evidence.columns import NO_ROWS, Rows
from vramscope_analysis.evidence.growth_report import GrowthReport
from vramscope_analysis.evidence.memory_layout import MemoryLayout
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.recorded_window import RecordedWindow
from vramscope_analysis.evidence.settings_trial import SettingsTrial

RunState = Literal["live", "ended", "lost"]


@dataclass(frozen=True)
class Stretch:
    """A phase of the job that lasted: an evaluation, a checkpoint, one that the user named.

    Args:
        name: ``eval``, ``checkpoint``, ...; never forward, backward or optimizer.
        start_ns, end_ns: from when until when; ``end_ns`` is None while it lasts.
        step: steps that were over when it began.
        peak_bytes: the highest of allocated memory in it, where it is known.
    """

    name: str
    start_ns: int
    end_ns: int | None
    step: int | None
    peak_bytes: int | None = None


@dataclass(frozen=True)
class Happening:
    """An event as the agent told it: ``kind`` and ``data`` are those of the message."""

    time_ns: int
    kind: str
    step: int | None = None
    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, eq=False)
class RankEvidence:
    """One process of the run, in its present life.

    Args:
        rank: its number.
        steps: one row a step, oldest first; what is long ago may be missing.
        samples: of the last minutes, finely or at least once a second, oldest first.
        stretches: evaluations, checkpoints and phases of the user, oldest first.
        events: everything else that happened, oldest first.
        total_bytes: size of the device.
        limit_bytes: the process's own cap below that; None is none.
        device_uuid: which device it is, as its driver calls it; empty is not known.
        settings: the allocator's settings as one string; None is not known.
        processes: what processes hold of the device: ``pid``, ``command``, ``bytes``, ``own``.
        outside: what this process holds beside PyTorch's allocator: ``name``, ``bytes``.
        growth: the newest answer to the question what grows here.
        growth_so_far: an answer to what grows whose holders are still searched for; None is that
            there is none, or a whole one since then.
        within_step: the newest answer to what is held within a step, as in an evaluation.
        ooms: reports of running out of memory, oldest first.
        trials: what the newest recorded window says of other settings, the best first.
        window: what that window tells of the job's requests.
        layout: the newest memory map by pool and stream; None where nobody has looked.
        world_size: how many ranks the run has.
    """

    rank: int
    host: str = ""
    steps: Rows = NO_ROWS
    samples: Rows = NO_ROWS
    stretches: tuple[Stretch, ...] = ()
    events: tuple[Happening, ...] = ()
    total_bytes: int | None = None
    limit_bytes: int | None = None
    device_uuid: str = ""
    torch_version: str = ""
    settings: str | None = None
    processes: tuple[Mapping[str, Any], ...] = ()
    outside: tuple[Mapping[str, Any], ...] = ()
    growth: GrowthReport | None = None
    ooms: tuple[OomReport, ...] = ()
    trials: tuple[SettingsTrial, ...] = ()
    growth_so_far: GrowthReport | None = None
    within_step: GrowthReport | None = None
    window: RecordedWindow | None = None
    layout: MemoryLayout | None = None
    world_size: int = 1


@dataclass(frozen=True, eq=False)
class RunEvidence:
    """A run with its ranks.

    Args:
        run_id: the run.
        now_ns: the time that it is judged for; nothing in it is newer.
        state: whether it goes on.
        ranks: by number, those that have sent anything.
        world_size: how many there should be.
        emulated: whether its device is the allocator's model.
    """

    run_id: str
    now_ns: int
    state: RunState = "live"
    ranks: tuple[RankEvidence, ...] = ()
    world_size: int = 1
    emulated: bool = False
