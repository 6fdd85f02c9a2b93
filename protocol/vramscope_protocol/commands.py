"""The commands a person can send to a job: names, rights, parameters, states, receipts."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, ValidationError, convert, field

from vramscope_protocol.errors import BAD_REQUEST, VramscopeError
from vramscope_protocol.integers import Int64

Right = Literal["view", "control"]
Place = Literal["step boundary", "agent thread"]

CommandState = Literal["queued", "prepared", "running", "done", "failed", "refused", "expired"]
FINAL_STATES: Final[frozenset[str]] = frozenset({"done", "failed", "refused", "expired"})


MAX_WATCH_S: Final = 60.0
"""Whoever looks at the memory map for longer asks again."""


class Receipt(Struct, omit_defaults=True):
    """What a command did on one rank. Sizes in bytes, ``took_s`` in seconds."""

    state: CommandState
    step: Int64 | None = None
    before: dict[str, Any] = field(default_factory=dict[str, Any])
    after: dict[str, Any] = field(default_factory=dict[str, Any])
    returned_bytes: Int64 | None = None
    """Bytes given back to the device (in a dry run: that would be given back)."""
    took_s: float | None = None
    message: str = ""
    """One sentence for a person: what happened, or why nothing did."""
    result: Any = None
    """Text or data of a command that answers a question."""
    dry_run: bool = False


class NoParams(Struct, forbid_unknown_fields=True):
    """The command takes no parameters."""


class WatchMapParams(Struct, forbid_unknown_fields=True):
    """For how long frames of the memory map are wanted."""

    seconds: Annotated[float, Meta(gt=0, le=MAX_WATCH_S)] = MAX_WATCH_S


class SnapshotParams(Struct, forbid_unknown_fields=True):
    """What a snapshot holds beside the segments."""

    traces: bool = False
    """With the history, if one is recorded."""


class HistoryParams(Struct, forbid_unknown_fields=True):
    """How to record, and for how long."""

    mode: Literal["state", "alloc", "all"] = "alloc"
    """``state``: stacks of live blocks alone; ``alloc``: every event, with the stacks of
    allocations; ``all``: with those of frees too."""
    stacks: bool = True
    """With Python stacks; ``state`` is nothing without them."""
    steps: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    """Stop after so many steps, with a snapshot of what was recorded."""
    max_mib: Annotated[int, Meta(ge=16, le=65_536)] = 256
    """Host memory that the recording may take, in MiB."""
    backward_lines: bool = False
    """Mark what a backward pass allocates with the line of the forward pass that it is for."""


class ProfileModulesParams(Struct, forbid_unknown_fields=True):
    """For how long modules are watched."""

    steps: Annotated[int, Meta(ge=1, le=50)] = 3
    """Optimizer steps."""


class OomReportParams(Struct, forbid_unknown_fields=True):
    """What a report that was asked for belongs to."""

    linked_to: Annotated[str, Meta(max_length=128)] = ""
    """Id of the report of a rank that ran out of memory."""


class ExplainGrowthParams(Struct, forbid_unknown_fields=True):
    """How to look at what grows."""

    looks: Annotated[int, Meta(ge=3, le=12)] = 4
    """Step ends that are compared."""
    every: Annotated[int, Meta(ge=1, le=1000)] = 1
    """Least number of steps between two of them."""
    max_ms: Annotated[float, Meta(ge=10, le=5000)] = 400
    """Longest time, in ms, that the search for holders may take at one step end."""
    max_steps: Annotated[int, Meta(ge=4, le=5000)] = 400
    """Give up waiting for growth after so many steps."""
    host: bool = False
    """Look at host memory instead: by the number of steps, not when device memory rises."""
    above_bytes: Annotated[int, Meta(ge=1)] | None = None
    """Look once within a step instead, when so much device memory is allocated."""


class CommandSpec(Struct, frozen=True):
    """Declaration of one command, read by the agent, the server, the page and the CLI."""

    name: str
    right: Right
    place: Place
    summary: str
    dry_run: bool = False
    params: type[Struct] = NoParams


COMMANDS: Final[dict[str, CommandSpec]] = {
    spec.name: spec
    for spec in (
        CommandSpec(
            "empty_cache",
            "control",
            "step boundary",
            "Give cached, unused segments back to the device.",
            dry_run=True,
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
