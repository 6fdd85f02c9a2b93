"""The commands that a person can send to a job, by name, and the check of their parameters."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, ValidationError, convert

from vramscope_protocol.commands import CommandSpec
from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_protocol.parameters import (
    AccumulationParams,
    AllocatorSettingsParams,
    BatchSizeParams,
    ExplainGrowthParams,
    GcThresholdsParams,
    HistoryParams,
    MemoryFractionParams,
    OomReportParams,
    PauseParams,
    ProfileModulesParams,
    SamplingRateParams,
    SnapshotParams,
    WatchMapParams,
)

COMMANDS: Final[dict[str, CommandSpec]] = {
    spec.name: spec
    for spec in (
        CommandSpec(
            "empty_cache",
            "control",
            "step boundary",
            "Give cached, unused segments back to the device.",
            dry_run=True,
            same_step=True,
        ),
        CommandSpec(
            "gc_collect",
            "control",
            "step boundary",
            "Run a full Python garbage collection.",
        ),
        CommandSpec(
            "empty_cache+gc_collect",
            "control",
            "step boundary",
            "Collect garbage first, then give cached segments back.",
            dry_run=True,
            same_step=True,
        ),
        CommandSpec(
            "memory_summary",
            "view",
            "agent thread",
            "PyTorch's own memory summary, as text.",
        ),
        CommandSpec(
            "stats",
            "view",
            "agent thread",
            "Every counter of the caching allocator.",
        ),
        CommandSpec(
            "reset_peaks",
            "control",
            "step boundary",
            "Reset the allocator's peak counters to the current values.",
        ),
        CommandSpec(
            "snapshot",
            "control",
            "step boundary",
            "Take a snapshot of the segments, on request with the recorded history.",
            params=SnapshotParams,
        ),
        CommandSpec(
            "profile_modules",
            "control",
            "step boundary",
            "Watch memory module by module for a few steps; they are slower.",
            params=ProfileModulesParams,
        ),
        CommandSpec(
            "history_start",
            "control",
            "step boundary",
            "Record the allocator's history, for some steps or until it is stopped.",
            params=HistoryParams,
        ),
        CommandSpec(
            "history_stop",
            "control",
            "step boundary",
            "Stop recording and forget what was recorded.",
        ),
        CommandSpec(
            "history_dump",
            "control",
            "step boundary",
            "Take a snapshot with the history recorded so far; recording goes on.",
        ),
        CommandSpec(
            "explain_growth",
            "view",
            "step boundary",
            "Find out over some steps which lines hold more and more memory, and what keeps it.",
            params=ExplainGrowthParams,
        ),
        CommandSpec(
            "watch_map",
            "view",
            "agent thread",
            "Send the memory map for some seconds.",
            params=WatchMapParams,
        ),
        CommandSpec(
            "oom_report",
            "view",
            "agent thread",
            "Write down what fills the memory, as if it had run out.",
            params=OomReportParams,
        ),
        CommandSpec(
            "stacks",
            "view",
            "agent thread",
            "The Python stack of every thread, as text.",
        ),
        CommandSpec(
            "set_batch_size",
            "control",
            "step boundary",
            "Change how many samples a rank takes at a time; accumulation keeps the global batch.",
            dry_run=True,
            same_step=True,
            whole_run=True,
            changes_training=True,
            params=BatchSizeParams,
        ),
        CommandSpec(
            "set_accumulation",
            "control",
            "step boundary",
            "Change how many batches make an optimizer step; the batch size is made to fit.",
            dry_run=True,
            same_step=True,
            whole_run=True,
            changes_training=True,
            params=AccumulationParams,
        ),
        CommandSpec(
            "set_allocator_settings",
            "control",
            "step boundary",
            "Change settings of the caching allocator while the job runs.",
            dry_run=True,
            params=AllocatorSettingsParams,
        ),
        CommandSpec(
            "set_memory_fraction",
            "control",
            "step boundary",
            "Change which part of the device PyTorch may hold.",
            params=MemoryFractionParams,
        ),
        CommandSpec(
            "clear_plan_caches",
            "control",
            "step boundary",
            "Forget cuFFT's plans, with their work areas.",
        ),
        CommandSpec(
            "clear_cublas_workspaces",
            "control",
            "step boundary",
            "Let go of the workspaces of cuBLAS; it takes them anew when it needs them.",
        ),
        CommandSpec(
            "set_gc_thresholds",
            "control",
            "step boundary",
            "Change when Python collects garbage by itself.",
            params=GcThresholdsParams,
        ),
        CommandSpec(
            "set_sampling_rate",
            "control",
            "agent thread",
            "Change how often the agent looks.",
            params=SamplingRateParams,
        ),
        CommandSpec(
            "pause",
            "control",
            "step boundary",
            "Let training stand still after a step, until it is resumed or the time is over.",
            same_step=True,
            whole_run=True,
            changes_training=True,
            params=PauseParams,
        ),
        CommandSpec(
            "resume",
            "control",
            "agent thread",
            "Let training that was paused go on.",
            whole_run=True,
        ),
        CommandSpec(
            "stop",
            "control",
            "step boundary",
            "End training after a step, the way its framework or Ctrl-C would.",
            same_step=True,
            whole_run=True,
            changes_training=True,
        ),
    )
}
"""Every built-in command by name."""


def command_spec(name: str) -> CommandSpec:
    """Look a command up.

    Raises:
        VramscopeError: ``bad_request``, with the names that exist.
    """
    spec = COMMANDS.get(name)
    if spec is None:
        raise VramscopeError(
            BAD_REQUEST,
            f"no command named {name!r}; expected one of: {', '.join(sorted(COMMANDS))}",
        )
    return spec


def check_params(spec: CommandSpec, params: dict[str, Any], *, dry_run: bool) -> Struct:
    """Validate parameters before anything is touched.

    Raises:
        VramscopeError: ``bad_request``, with the path of the wrong parameter.
    """
    if dry_run and not spec.dry_run:
        raise VramscopeError(BAD_REQUEST, f"{spec.name} has no dry run")
    try:
        return convert(params, spec.params)
    except ValidationError as error:
        raise VramscopeError(BAD_REQUEST, f"parameters of {spec.name}: {error}") from None
