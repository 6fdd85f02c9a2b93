"""What would make every step of this job smaller: each only where its own numbers show it.

Bytes are those of this job at this failure: of the tensors that the report names, of its lines, of
its categories. What they depend on besides (a type, the number of copies an optimizer keeps) is
read from the same report, or nothing is predicted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_place import optimizer_in, place_in
from vramscope_analysis.diagnosis.words import count_text, place_text, size_text
from vramscope_analysis.evidence.entry_values import amount_in, entries_in, text_in

_ACTIVATIONS: Final = "activations"
_FLOAT32: Final = re.compile(r"(?:torch\.)?float32\b")
_LEAST_SHARE: Final = 0.05
"""Of what is allocated: what saves less is not worth a word."""
_LEAST_BLOCKS: Final = 4
"""So many blocks of one line are layers that repeat."""
_NAMED: Final = ("parameters", "gradients", "optimizer_state", "buffers")


def savings(case: OomCase) -> list[Remedy]:
    """All that apply, the one that frees most first."""
    found = [remedy for remedy in (saving(case) for saving in _SAVINGS) if remedy is not None]
    return sorted(found, key=lambda remedy: -(remedy.predicted_bytes or 0))


def _checkpointing(case: OomCase) -> Remedy | None:
    """The line of a forward pass that keeps most, if it is one of layers that repeat.

    With its module checkpointed the blocks of one layer live at a time: of ``count`` equal shares
    all but one are freed. The inputs of the layers stay, so it is at most that.
    """
    best = max(
        (row for row in case.report.by_stack if _is_activation(row)),
        key=lambda row: amount_in(row, "bytes"),
        default=None,
    )
    if best is None or amount_in(best, "count") < _LEAST_BLOCKS or not _is_worth(case, best):
        return None
    size, count = amount_in(best, "bytes"), amount_in(best, "count")
    freed = size - size // count
    line = place_text(text_in(best, "file"), amount_in(best, "line"))
    return Remedy(
        f"recompute activations: checkpoint the module of {line}",
        f"{count_text(count, 'block')} of this line hold {size_text(size)}; at most so much.",
        freed,
        "its forward pass runs twice",
        "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
    )


def _mixed_precision(case: OomCase) -> Remedy | None:
    """Half of the float32 activations that the report names, less the copies of the weights.

    Autocast keeps a copy of each weight in half precision during the forward pass.
    """
    tensors = [t for t in case.report.largest if t.get("category") not in _NAMED]
    named = sum(amount_in(tensor, "bytes") for tensor in tensors)
    float32 = sum(amount_in(t, "bytes") for t in tensors if _is_float32(t))
    if not named or float32 < 0.5 * named:
        return None
    parameters = case.report.by_category.get("category.parameters_bytes")
    if parameters is None:
        return None
    freed = float32 // 2 - parameters // 2
    if freed <= _LEAST_SHARE * (case.shortage.allocated_bytes or 0):
        return None
    return Remedy(
        "compute in bfloat16: torch.autocast",
        f"the largest tensors are float32: {size_text(float32)} that would be half, less copies "
        f"of the weights of {size_text(parameters // 2)}.",
        freed,
        "fewer digits in activations",
        'with torch.autocast("cuda", dtype=torch.bfloat16):',
    )


def _state_in_8_bits(case: OomCase) -> Remedy | None:
    return smaller_state(case, case.report.by_category.get("category.optimizer_state_bytes") or 0)


def smaller_state(case: OomCase, state: int) -> Remedy | None:
    """Optimizer state of 8 bits: of four bytes a value three are freed, of two one.

    Args:
        case: says which type its parameters have.
        state: bytes of the state, as it is or will be.
    """
    if state < _LEAST_SHARE * (case.shortage.allowed_bytes or 0) or not state:
        return None
    dtype = _parameter_type(case)
    if dtype not in ("float32", "bfloat16", "float16"):
        return None
    freed = state * 3 // 4 if dtype == "float32" else state // 2
    return Remedy(
        "keep the optimizer's state in 8 bits",
        f"it is {size_text(state)} for parameters of {dtype}.",
        freed,
        "another optimizer: bitsandbytes or torchao have them",
        "bitsandbytes.optim.AdamW8bit(...)",
    )


def _sharded_state(case: OomCase) -> Remedy | None:
    """Of what every rank has whole, all but this rank's share."""
    ranks = case.report.world_size
    state = case.report.by_category.get("category.optimizer_state_bytes") or 0
    if ranks < 2 or state < _LEAST_SHARE * (case.shortage.allowed_bytes or 0) or not state:
        return None
    return Remedy(
        f"shard the optimizer's state over the {ranks} ranks",
        f"each now holds {size_text(state)}, if none is sharded yet.",
        state - state // ranks,
        "parameters are gathered after each step",
        "torch.distributed.optim.ZeroRedundancyOptimizer or fully_shard",
    )


def _fused_optimizer(case: OomCase) -> Remedy | None:
    """The temporary copies of an optimizer's step, if it is there that memory ran out."""
    if case.report.part != "optimizer" or not optimizer_in(case.report):
        return None
    temporary = _optimizer_temporaries(case)
    if not temporary:
        return None
    return Remedy(
        "step the optimizer fused, or parameter by parameter",
        f"its step takes {size_text(temporary)} for a moment beyond what it keeps.",
        temporary,
        "foreach=False is slower; fused=True is not",
        f"{optimizer_in(case.report)}: fused=True, or foreach=False",
    )


def _optimizer_temporaries(case: OomCase) -> int | None:
    """Highest within the optimizer beyond the step's end, as a step that was split had it."""
    steps = case.report.steps
    peak, floor = steps.last("part.optimizer.peak_bytes"), case.demand.floor_bytes
    return max(peak - floor, 0) if peak is not None and floor is not None else None


_SAVINGS: Final[tuple[Callable[[OomCase], Remedy | None], ...]] = (
    _checkpointing,
    _mixed_precision,
    _state_in_8_bits,
    _sharded_state,
    _fused_optimizer,
)


def _is_activation(row: Mapping[str, Any]) -> bool:
    told = text_in(row, "category")
    if told:
        return told == _ACTIVATIONS
    place = place_in(entries_in(row, "frames"))
    return (place.function if place else text_in(row, "function")) == "forward"


def _is_worth(case: OomCase, row: Mapping[str, Any]) -> bool:
    return amount_in(row, "bytes") >= _LEAST_SHARE * (case.shortage.allocated_bytes or 1)


def _is_float32(tensor: Mapping[str, Any]) -> bool:
    return bool(_FLOAT32.match(text_in(tensor, "tensor")))


def _parameter_type(case: OomCase) -> str:
    """The type of the largest parameter in the report; empty if none is."""
    for tensor in case.report.largest:
        if tensor.get("category") == "parameters":
            return text_in(tensor, "tensor").partition("[")[0].removeprefix("torch.")
    return ""
