"""One turn of all judges over one run: what each of them says, and which of them failed."""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from vramscope_analysis.diagnosis.diagnose import RankJudge, RunJudge
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.questions import Question, questions
from vramscope_analysis.evidence.run_evidence import RunEvidence

_logger = logging.getLogger("vramscope.findings")

MAX_FINDINGS: Final = 256
"""Findings of one judge in one turn; more are not read."""

Judges = Sequence[RankJudge | RunJudge]


class Found(NamedTuple):
    """A finding and the judge that made it."""

    judge: str
    finding: Finding


@dataclass
class Judgement:
    """What all judges said of a run at one time."""

    run_id: str
    ranks: frozenset[int]
    """The ranks that there was evidence of."""
    found: list[Found] = field(default_factory=list[Found])
    failures: set[str] = field(default_factory=set[str])
    """Judges that raised."""
    not_asked: frozenset[str] = frozenset()
    """Judges that another server asks."""
    questions: list[Question] = field(default_factory=list[Question])
    """What a rank could be asked to know more, the most urgent first."""
    took_s: float = 0.0
    """All of it, with putting the evidence together."""


class Judging:
    """Asks the judges. Used by one thread at a time.

    Args:
        judges: those that are asked, in this order.
        questions: says what else is worth knowing.
    """

    def __init__(
        self, judges: Judges, questions: Callable[[RunEvidence], list[Question]] = questions
    ) -> None:
        self._judges = judges
        self._questions = questions
        self.failures: Counter[str] = Counter()
        """How often each judge raised."""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """What each judge took so far."""

    @property
    def names(self) -> list[str]:
        """What is looked for."""
        return list(dict.fromkeys(judge.name for judge in self._judges))

    def judge(self, run: RunEvidence, without: frozenset[str] = frozenset()) -> Judgement:
        """Ask every judge. One that raises is noted, and the others are asked all the same.

        Args:
            run: what is known.
            without: names of judges that are not asked.
        """
        ranks = frozenset(rank.rank for rank in run.ranks)
        judgement = Judgement(run.run_id, ranks, not_asked=without)
        # Numbers of an agent may be anything.
        with np.errstate(all="ignore"):
            for judge in self._judges:
                if judge.name in without:
                    continue
                for ask in judge.questions(run):
                    with self._guarded(judge.name, judgement):
                        told = ask()[:MAX_FINDINGS]
                        judgement.found += [Found(judge.name, finding) for finding in told]
            with self._guarded("questions", judgement):
                judgement.questions = self._questions(run)
        return judgement

    @contextmanager
    def _guarded(self, name: str, judgement: Judgement) -> Generator[None]:
        begun_s = time.perf_counter()
        try:
            yield
        except Exception:  # a judge that fails must not silence the others
            judgement.failures.add(name)
            self.failures[name] += 1
            # It will fail again every few seconds, in the same way.
            if self.failures[name].bit_count() == 1:
                count = self.failures[name]
                _logger.exception("the judge %s failed, %d times so far", name, count)
        finally:
            self.seconds[name] += time.perf_counter() - begun_s
