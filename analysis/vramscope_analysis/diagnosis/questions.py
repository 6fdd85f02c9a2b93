"""What to ask an agent, so that a suspicion becomes a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from vramscope_analysis.diagnosis.delayed_reuse import delayed_reuse
from vramscope_analysis.diagnosis.evaluation_ramp import evaluation_ramp
from vramscope_analysis.diagnosis.growth_reading import GrowthReading, growth_reading
from vramscope_analysis.diagnosis.held_memory import step_to_ask_about
from vramscope_analysis.diagnosis.ramp_holder import ramp_look
from vramscope_analysis.diagnosis.staircase import Staircase, staircase_of
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence

COMMAND: Final = "explain_growth"

LOOKS: Final = 4
_LOOKS_OF_RISES: Final = 3
EVERY_STEPS: Final = 4
_LONGEST_EVERY: Final = 1000
_PERIODS: Final = 5
_MORE_STEPS: Final = 8
_MOST_STEPS: Final = 5000
_OF_HELD: Final = {"looks": 3, "every": 1, "max_steps": 8}
"""It grows no more: a few steps are enough to be told who holds what."""
_OF_WAITING: Final = {"looks": 3, "every": 1, "max_steps": 16}
"""How much waits at a step's end differs; of some steps the agent tells that with the most."""
_SETTLED_STEPS: Final = 32
"""Until then it may still be part of something that goes on."""
_AGAIN_AFTER: Final = 4.0
"""Ask again when it has gone on for so many times as long as it had when the answer came."""


@dataclass(frozen=True)
class Question:
    """A command that would tell more.

    Args:
        rank: whom to ask.
        reason: why, in words for the audit.
        params: of the command.
        grown_bytes: how much is at stake; the most urgent first.
    """

    rank: int
    reason: str
    params: Mapping[str, int] = field(default_factory=dict[str, int])
    grown_bytes: int = 0


def questions(run: RunEvidence) -> list[Question]:
    """What is worth asking now, the most urgent first; of growth that is understood nothing.

    Args:
        run: what is known.
    """
    each = (_question(rank) or _of_waiting(rank) for rank in run.ranks)
    asked = [question for question in each if question is not None]
    return sorted(asked, key=lambda question: -question.grown_bytes)


def _question(rank: RankEvidence) -> Question | None:
    reading = growth_reading(rank)
    growth = reading.growth
    if growth is None:
        return (
            _of_sawtooth(rank, reading)
            or _of_two_rises(rank, reading)
            or _of_ramp(rank, reading)
            or _of_held_memory(rank)
        )
    if not reading.is_suspicious:
        return _of_sawtooth(rank, reading)
    if not _is_open(rank, reading):
        return None
    return Question(
        rank.rank,
        f"memory has grown since step {growth.since_step}",
        _looks(growth.period_steps),
        int(growth.grown_bytes),
    )


def _looks(period_steps: int) -> dict[str, int]:
    if period_steps <= EVERY_STEPS:
        return {"looks": LOOKS, "every": EVERY_STEPS}
    # The agent looks when memory has risen; what lies between rises is not to be taken for one.
    every = min(max(period_steps // 3, EVERY_STEPS), _LONGEST_EVERY)
    # If the next rises do not come it is over soon, and something else can be asked.
    max_steps = min(_PERIODS * period_steps + _MORE_STEPS, _MOST_STEPS)
    return {"looks": _LOOKS_OF_RISES, "every": every, "max_steps": max_steps}


def _of_two_rises(rank: RankEvidence, reading: GrowthReading) -> Question | None:
    """Two equal rises are no reason to speak, but one to watch the next ones."""
    staircase = staircase_of(reading.floors, rank.stretches, least_rises=2)
    if staircase is None or staircase.growth.adds_blocks is False:
        return None
    if _was_watched(rank, staircase):
        return None
    return Question(
        rank.rank,
        f"memory rose alike at steps {staircase.steps[0]} and {staircase.steps[1]}",
        _looks(staircase.growth.period_steps),
        int(staircase.growth.grown_bytes),
    )


def _was_watched(rank: RankEvidence, staircase: Staircase) -> bool:
    """Whether an agent has looked since the last rise, and for as long as one takes to come."""
    steps = () if rank.growth is None else rank.growth.steps
    if not steps or steps[-1] <= staircase.steps[-1]:
        return False
    return steps[-1] - steps[0] >= staircase.growth.period_steps


def _of_sawtooth(rank: RankEvidence, reading: GrowthReading) -> Question | None:
    sawtooth = reading.sawtooth
    if sawtooth is None or reading.verdict is not None:
        return None
    answer = rank.growth
    # One that found nothing, between two falls, has not answered it.
    if answer is not None and answer.groups and answer.steps[-1:] >= (sawtooth.falls[0],):
        return None
    return Question(
        rank.rank,
        "memory falls when Python collects",
        {"looks": LOOKS, "every": EVERY_STEPS},
        int(sawtooth.top_bytes),
    )


def _of_ramp(rank: RankEvidence, reading: GrowthReading) -> Question | None:
    """What builds up in an evaluation is there to be seen in the next one."""
    ramp = evaluation_ramp(rank, reading.floors)
    look = None if ramp is None else ramp_look(rank, ramp)
    if ramp is None or look is None:
        return None
    reason = f"memory builds up within step {ramp.steps[-1]}"
    return Question(rank.rank, reason, look, int(ramp.bytes))


def _of_held_memory(rank: RankEvidence) -> Question | None:
    step = step_to_ask_about(rank)
    if step is None or rank.steps.number is None:
        return None
    if int(rank.steps.number[-1]) < step + _SETTLED_STEPS:
        return None
    if rank.growth is not None and rank.growth.steps[-1:] > (step,):
        return None
    return Question(rank.rank, f"what has stayed since step {step}", dict(_OF_HELD))


def _of_waiting(rank: RankEvidence) -> Question | None:
    """Which lines allocate what waits for another stream, where no look has told."""
    found = delayed_reuse(rank)
    if not found or found[0].culprits or rank.steps.number is None:
        return None
    steps = () if rank.growth is None else rank.growth.steps
    if steps and int(rank.steps.number[-1]) < _AGAIN_AFTER * steps[-1]:
        return None
    reason = "which lines allocate what waits for another stream"
    return Question(rank.rank, reason, dict(_OF_WAITING), found[0].evidence["waiting_bytes"])


def _is_open(rank: RankEvidence, reading: GrowthReading) -> bool:
    """Whether it was not asked yet, or so long ago that the answer may be another one."""
    growth, report = reading.growth, rank.growth
    if growth is None or reading.verdict is not None:
        return False
    if not reading.is_asked or report is None or not report.steps:
        return True
    then = report.steps[-1] - growth.since_step
    return growth.steps >= _AGAIN_AFTER * max(then, 1)
