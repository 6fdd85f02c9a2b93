"""The advice on the batch size as the API gives it out."""

from __future__ import annotations

from typing import Any

from vramscope_analysis.batch.advice_words import SILENCES, advice_sentence, basis, open_question
from vramscope_analysis.batch.batch_advice import BatchAdvice, Silence
from vramscope_analysis.batch.probe_plan import ProbePlan, probe_plan
from vramscope_analysis.batch.run_advice import RunAdvice


def batch_payload(found: RunAdvice | Silence, head_room: float) -> dict[str, Any]:
    """The advice, or the reason why there is none.

    Args:
        found: what the ranks tell.
        head_room: part of the limit that was asked to stay free.
    """
    if isinstance(found, str):
        return {
            "head_room": head_room,
            "silent": {"reason": found, "text": SILENCES[found]},
            "advice": None,
            "probe": None,
        }
    return {
        "head_room": head_room,
        "silent": None,
        "advice": _advice(found, head_room),
        "probe": _probe(probe_plan(found)),
    }


def _advice(found: RunAdvice, head_room: float) -> dict[str, Any]:
    one, keeping = found.deciding, found.keeping
    return {
        "sentence": advice_sentence(found, head_room),
        "batch_size": found.batch,
        "low": found.low,
        "high": found.high,
        "confidence": found.confidence,
        "current": found.current,
        "accumulation": found.passes,
        "gain": found.gain,
        "world_size": found.world_size,
        "peak_bytes": one.peak_bytes,
        "limit_bytes": one.room.limit_bytes,
        "allowed_bytes": one.room.allowed_bytes,
        "is_replayed": one.is_replayed,
        "basis": basis(found),
        "open_question": open_question(found),
        "keeping": None
        if keeping is None
        else {"batch_size": keeping.batch, "accumulation": keeping.passes},
        "params": {"batch_size": found.batch, "change_global_batch": True},
        "deciding_rank": one.rank,
        "ranks": [_rank(each) for each in found.ranks],
        "silent_ranks": [
            {"rank": rank, "reason": reason, "text": SILENCES[reason]}
            for rank, reason in found.silent.items()
        ],
    }


def _rank(one: BatchAdvice) -> dict[str, Any]:
    model = one.model
    return {
        "rank": one.rank,
        "batch_size": one.batch,
        "low": one.low,
        "high": one.high,
        "current": one.current,
        "steps": one.steps,
        "constant_bytes": model.fixed_bytes,
        "sample_bytes": round(model.sample_bytes),
        "waste_bytes": None if one.is_replayed else one.room.waste_bytes,
        "peak_bytes": one.peak_bytes,
        "limit_bytes": one.room.limit_bytes,
        "tried": [
            {"batch_size": size, "peak_bytes": round(model.fixed_bytes + highest)}
            for size, highest in zip(model.sizes, model.highest_bytes, strict=True)
        ],
    }


def _probe(plan: ProbePlan | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    return {
        "batch_size": plan.batch,
        "accumulation": plan.passes,
        "back": plan.back,
        "steps": plan.steps,
        "changes_global_batch": plan.changes_global_batch,
        "params": plan.params,
        "costs": [list(each) for each in plan.costs],
    }
