"""What an agent says of itself and of what else is on its device: parts of its status."""

from __future__ import annotations

from msgspec import Struct, field

from vramscope_protocol.integers import Count


class AgentAccount(Struct, omit_defaults=True):
    """What the agent has cost and done since attach."""

    elapsed_us: Count = 0
    """Time since attach."""
    cpu_us: dict[str, Count] = field(default_factory=dict[str, Count])
    """CPU time by part: "sampler", "transport", "hooks", and others while they are in use."""
    turns: Count = 0
    """Times that the sampler thread woke up."""
    gil_us: Count | None = None
    """Time of these turns, without what went by in calls that give the GIL away."""
    samples: Count = 0
    """Sample rows taken."""
    sent_bytes: Count = 0
    queued_messages: Count = 0
    """Messages that no server has acknowledged yet."""
    wanted_rate_hz: float = 0.0
    """Samples a second when cost is no matter."""
    budget_fraction: float = 0.0
    """CPU time allowed to the sampler thread, as a fraction of one core; 0 is no limit."""
    lost: dict[str, Count] = field(default_factory=dict[str, Count])
    """Rows and messages that were dropped, by reason."""
    errors: dict[str, Count] = field(default_factory=dict[str, Count])
    """Errors that were kept away from the job, by place."""


class ProcessMemory(Struct, omit_defaults=True):
    """A process that uses the device, as the driver lists it."""

    pid: Count
    command: str = ""
    """Name of its program, without arguments (may hold secrets); empty if it is not known."""
    bytes: Count | None = None


class MemoryPart(Struct, omit_defaults=True):
    """A named part of what this process uses outside of PyTorch's allocator."""

    name: str
    bytes: Count
    how: str = ""
    """How it is known: "measured", "estimated", ..."""
