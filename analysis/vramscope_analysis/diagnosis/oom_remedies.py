"""What would have helped: first against the cause, then what makes every step smaller.

A remedy that would not have granted the request by itself comes behind those that would. What
works against another cause than the one found is left out: a smaller training batch helps no
evaluation, and no leak for long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.growth_verdict import GrowthVerdict, verdict_of
from vramscope_analysis.diagnosis.holder_remedies import remedies_of as growth_remedies
from vramscope_analysis.diagnosis.oom_batch import batch_remedies
from vramscope_analysis.diagnosis.oom_case import OomCase
from vramscope_analysis.diagnosis.oom_causes import Cause, held_by, was_served_before
from vramscope_analysis.diagnosis.oom_limits import proven_settings, raised_limit
from vramscope_analysis.diagnosis.oom_pieces import whole_pieces
from vramscope_analysis.diagnosis.oom_place import optimizer_in
from vramscope_analysis.diagnosis.oom_savings import savings, smaller_state
from vramscope_analysis.diagnosis.words import size_text
from vramscope_analysis.evidence.entry_values import amount_in, texts_in

MOST_REMEDIES: Final = 6
_STATE_COPIES: Final = {
    "adam": 2,
    "adamw": 2,
    "nadam": 2,
    "radam": 2,
    "adamax": 2,
    "adagrad": 1,
    "sgd": 1,
}
"""Tensors as large as its parameter that each of PyTorch's optimizers makes (``_init_group``)."""
_OF_BATCH: Final = ("spike", "growing_demand", "too_big", "limit", "fragmentation")
"""Causes that a smaller step works against."""

Against = Callable[[OomCase, Cause], list[Remedy]]


def remedies_of(case: OomCase, causes: list[Cause]) -> tuple[Remedy, ...]:
    """Everything that would help, the most fitting first."""
    main = causes[0]
    against = _AGAINST[main.name](case, main) if main.name in _AGAINST else []
    general = list(proven_settings(case))
    is_usual = main.name == "fragmentation" and was_served_before(case)
    if main.name in _OF_BATCH and not is_usual:
        # Not for all steps because of one.
        general += [*(() if main.name == "spike" else batch_remedies(case)), *savings(case)]
    general.sort(key=lambda remedy: _rank(case, remedy))
    for cause in causes[1:]:
        if cause.name in ("garbage", "retained_exception", "other_process"):
            general += _AGAINST[cause.name](case, cause)
    return tuple([*against, *general, *raised_limit(case)][:MOST_REMEDIES])


def _rank(case: OomCase, remedy: Remedy) -> tuple[bool, int]:
    freed = remedy.predicted_bytes or 0
    return freed < (case.shortage.missing_bytes or 0), -freed


# ---------------------------------------------------------------------------------- against a cause


def _bounded_batch(case: OomCase, cause: Cause) -> list[Remedy]:
    demand, needed = case.demand, case.shortage.needed_bytes
    highest = demand.highest_peak_bytes
    freed = None if needed is None or highest is None or needed <= highest else needed - highest
    growing = cause.name == "growing_demand"
    why = (
        "stops the growth; no setting of the allocator does."
        if growing
        else f"the steps before needed {size_text(highest)} at most. Measure the batch size with "
        "the largest samples, not with the first."
    )
    return [Remedy("bound the size of a batch: cap, bucket or drop long samples", why, freed)]


def _former_batch(case: OomCase, cause: Cause) -> list[Remedy]:
    before, after = case.new_batch or (0, 0)
    return [
        Remedy(
            f"go back to a batch size of {before:,}, or accumulate",
            f"steps with it fitted; with more accumulation in place of {after:,} samples at a time "
            "an optimizer step sees as many.",
            cause.bytes,
        )
    ]


def _collected(case: OomCase, cause: Cause) -> list[Remedy]:
    return [
        Remedy(
            "break the reference cycle, or collect garbage every few steps",
            "it was unreachable already; a collection gives all of it back.",
            cause.bytes,
            "a collection walks through all objects of Python",
            "gc.collect()",
            "gc_collect",
        )
    ]


def _without_exception(case: OomCase, cause: Cause) -> list[Remedy]:
    return [
        Remedy(
            "let go of the exception before going on",
            "its traceback keeps the frames that failed, with their tensors: leave the except "
            "block before retrying, and clear sys.last_* in a notebook.",
            cause.bytes,
            fix="sys.last_traceback = sys.last_value = sys.last_exc = None; gc.collect()",
        )
    ]


def _without_process(case: OomCase, cause: Cause) -> list[Remedy]:
    return [
        Remedy(
            f"end the other process, or use another device ({cause.who})",
            f"other processes hold {size_text(cause.bytes)}; "
            f"{size_text(case.shortage.missing_bytes)} were missing.",
            cause.bytes,
        )
    ]


def _smaller_evaluation(case: OomCase, cause: Cause) -> list[Remedy]:
    remedies = [
        Remedy("evaluate in smaller batches", "training is not the cause and can stay as it is.")
    ]
    collected = [t for t in case.report.largest if _is_collected(t)]
    if collected:
        name = texts_in(collected[0], "held_by")[-1]
        remedies.append(
            Remedy(
                f"keep numbers, not tensors, in {name}",
                "what it collects stays on the device until the evaluation ends.",
                sum(amount_in(tensor, "bytes") for tensor in collected),
                fix="outputs.append(output.argmax(-1).cpu())",
            )
        )
    if case.report.grad_enabled or held_by(case.report.largest, "autograd_graph"):
        remedies.append(
            Remedy(
                "evaluate without gradients",
                "autograd keeps activations for a backward pass that does not come.",
                fix="with torch.inference_mode():",
            )
        )
    return remedies


def _is_collected(tensor: Mapping[str, Any]) -> bool:
    """Whether a list or a dict holds a tensor that is no part of the model."""
    held = texts_in(tensor, "held_by")
    is_listed = any(word.startswith(("list of", "dict of")) for word in held)
    return is_listed and not tensor.get("category")


def _smaller_save(case: OomCase, cause: Cause) -> list[Remedy]:
    return [
        Remedy(
            "gather what is saved on the host, not on the device",
            "saving must not need room for a second copy; training is not the cause.",
        )
    ]


def _kept_memory(case: OomCase, cause: Cause) -> list[Remedy]:
    verdict = growth_verdict(case)
    if verdict is not None:
        return list(growth_remedies(verdict, min(verdict.bytes, cause.bytes or verdict.bytes)))
    holder, size = main_holder(case)
    if holder:
        return [
            Remedy(
                f"let go of what {holder} holds",
                f"at least {size_text(size)} of the largest tensors; whatever else is saved, it "
                "fills up again.",
                size,
            )
        ]
    return [
        Remedy(
            "find what is kept from step to step",
            "whatever else is saved, it fills up again; the finding about the growth names the "
            "line.",
            cause.bytes,
        )
    ]


def growth_verdict(case: OomCase) -> GrowthVerdict | None:
    """What a look at the growing blocks had said, if there was one."""
    report = None if case.rank is None else case.rank.growth
    return None if report is None else verdict_of(report)


def main_holder(case: OomCase) -> tuple[str, int]:
    """Who holds most of the largest tensors that are no part of the model, and how much."""
    sizes: dict[str, int] = {}
    for tensor in case.report.largest:
        held = texts_in(tensor, "held_by")
        if held and not tensor.get("category"):
            # From the tensor to a name: the name is the last.
            sizes[held[-1]] = sizes.get(held[-1], 0) + amount_in(tensor, "bytes")
    name = max(sizes, key=lambda each: sizes[each], default="")
    return name, sizes.get(name, 0)


def _state(case: OomCase, cause: Cause) -> list[Remedy]:
    copies = _STATE_COPIES.get(optimizer_in(case.report))
    trained = case.report.by_category.get("category.gradients_bytes")
    size = copies * trained if copies and trained else None
    amount = f" ({size_text(size)})" if size else ""
    smaller = smaller_state(case, size) if size else None
    return [
        Remedy(
            "try a batch with a whole step, the optimizer's included",
            f"its state{amount} comes with the first step and stays; forward and backward alone "
            "do not show it.",
        ),
        *([] if smaller is None else [smaller]),
    ]


def _one_request(case: OomCase, cause: Cause) -> list[Remedy]:
    place = f" at {case.place.short}" if case.place else ""
    return [
        Remedy(
            f"look at the shapes{place}: it is one tensor",
            "a broadcast that was not meant, or a sample that is far longer than others.",
        )
    ]


def _given_back(case: OomCase, cause: Cause) -> list[Remedy]:
    return [
        Remedy(
            "empty the cache before this phase",
            "who allocates past PyTorch's allocator cannot have its free segments.",
            cause.bytes,
            "the next steps take their memory from the device again",
            "torch.cuda.empty_cache()",
            "empty_cache",
        )
    ]


def _less_pinned(case: OomCase, cause: Cause) -> list[Remedy]:
    samples = case.report.samples
    cached = (samples.last("host.pinned_reserved_bytes") or 0) - (
        samples.last("host.pinned_bytes") or 0
    )
    return [
        Remedy(
            "pin less: fewer workers, less prefetch, or pin_memory=False",
            "pinned memory of the host was asked for, not memory of the device.",
            cached if cached > 0 else None,
        )
    ]


_AGAINST: Final[dict[str, Against]] = {
    "resize": _former_batch,
    "spike": _bounded_batch,
    "growing_demand": _bounded_batch,
    "limit": _bounded_batch,
    "garbage": _collected,
    "retained_exception": _without_exception,
    "other_process": _without_process,
    "evaluation": _smaller_evaluation,
    "checkpoint": _smaller_save,
    "growth": _kept_memory,
    "first_step_state": _state,
    "fragmentation": lambda case, cause: whole_pieces(case),
    "large_request": _one_request,
    "cache": _given_back,
    "pinned_host": _less_pinned,
}
