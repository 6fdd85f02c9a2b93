"""An agent whose steps have batch sizes, and which changes them when it is asked to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.scripted_agent import COMMANDS, ScriptedAgent
from vramscope_protocol.messages import Command

MIB = 1 << 20
GIB = 1 << 30
FIXED = GIB
SAMPLE = 100 * MIB
PATH = "/api/v1/runs/train/batch"


def peak(size: int) -> int:
    """What a step with so many samples needs."""
    return FIXED + GIB // 2 + SAMPLE * size


def train(agent: ScriptedAgent, sizes: Sequence[int], first: int = 1, accumulation: int = 1) -> int:
    """Send a step for each size; the number of the step that comes next."""
    columns: dict[str, list[Any]] = {
        "step.batch_size": list(sizes),
        "step.batch_count": [accumulation] * len(sizes),
        "step.peak_allocated_bytes": [peak(size) for size in sizes],
        "step.peak_part": [2] * len(sizes),
        "category.parameters_bytes": [FIXED // 2] * len(sizes),
        "category.optimizer_state_bytes": [FIXED // 2] * len(sizes),
        "category.gradients_bytes": [FIXED // 2] * len(sizes),
    }
    agent.steps(len(sizes), step=first, **columns)
    agent.wait_acked()
    return first + len(sizes)


def can_resize(agent: ScriptedAgent) -> ScriptedAgent:
    """Have it accept changes of the batch size; before it connects."""
    agent.rank.commands = [*COMMANDS, "set_batch_size"]
    return agent


def answer(agent: ScriptedAgent, state: Any = "done", message: str = "") -> Command:
    """Take the next command and answer it."""
    command = agent.wait_command()
    agent.update(command, state, message=message)
    return command
