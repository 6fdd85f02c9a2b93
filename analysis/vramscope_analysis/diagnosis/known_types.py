"""Which number types a job computes in, where they were seen: in a report of running out of memory.

Nothing that is told at each step says in which type a tensor is. A report lists the largest tensors
that were alive, with their types, so whoever ran out once and went on, or started again, is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vramscope_analysis.evidence.entry_values import amount_in, text_in
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.run_evidence import RankEvidence

_FLOAT32: Final = re.compile(r"(?:torch\.)?float32\b")
_NAMED: Final = ("parameters", "gradients", "optimizer_state", "buffers")
_TRAINING: Final = ("forward", "backward")


@dataclass(frozen=True)
class KnownTypes:
    """Types of the largest tensors of a training step.

    Args:
        parameters: of the largest parameter, as in ``float32``; empty is not known.
        float32_share: part of the bytes of activations that is float32.
    """

    parameters: str
    float32_share: float


def known_types(rank: RankEvidence) -> KnownTypes | None:
    """What the newest report of a training step tells; None where there is none."""
    for report in reversed(rank.ooms):
        # An evaluation may compute in another type than training.
        if report.part in _TRAINING and not report.phase:
            found = _types(report)
            if found is not None:
                return found
    return None


def _types(report: OomReport) -> KnownTypes | None:
    activations = [each for each in report.largest if each.get("category") not in _NAMED]
    named = sum(amount_in(each, "bytes") for each in activations)
    if not named:
        return None
    float32 = sum(amount_in(each, "bytes") for each in activations if _is_float32(each))
    return KnownTypes(_parameter_type(report), float32 / named)


def _is_float32(tensor: Mapping[str, Any]) -> bool:
    return bool(_FLOAT32.match(text_in(tensor, "tensor")))


def _parameter_type(report: OomReport) -> str:
    for tensor in report.largest:
        if tensor.get("category") == "parameters":
            return text_in(tensor, "tensor").partition("[")[0].removeprefix("torch.")
    return ""
