"""What helps against a holder: each kind has remedies of its own, the most effective first."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from vramscope_analysis.diagnosis.finding import Remedy
from vramscope_analysis.diagnosis.growth_group import LRU_CACHE
from vramscope_analysis.diagnosis.growth_verdict import GrowthVerdict
from vramscope_analysis.diagnosis.holder_words import (
    container_name,
    container_of,
    holder_name,
    is_metric,
)
from vramscope_analysis.diagnosis.words import size_text

_SCALAR: Final = re.compile(r"\[\]$")


def remedies_of(verdict: GrowthVerdict, grown_bytes: int | None) -> tuple[Remedy, ...]:
    """What helps against this holder, the most effective first.

    Args:
        verdict: who holds what grows.
        grown_bytes: how much it has kept so far.
    """
    make = _BY_HOLDER.get(verdict.holder, _of_container)
    return make(verdict, grown_bytes)


def _of_container(verdict: GrowthVerdict, grown: int | None) -> tuple[Remedy, ...]:
    name = holder_name(verdict.held_by) or "what keeps them"
    freed = f"It frees {size_text(grown)} now" if grown else "It frees what has gathered"
    if is_metric(verdict):
        return (
            Remedy(
                "Reset the metric at the end of each epoch",
                f"{freed}, and again each time; until then it needs every batch.",
                grown,
                fix=f"{name.split('.')[0]}.reset()",
            ),
            Remedy(
                "Use the functional form, or keep the metric on the CPU",
                "Nothing gathers on the GPU; the CPU's memory grows instead if it keeps batches.",
                grown,
            ),
        )
    container = container_name(verdict.held_by)
    of_whom = f", which {name} has," if container not in ("", name) else ""
    name = container or name
    first = Remedy(
        f"Clear {name}{of_whom} once it has been used",
        f"{freed}; it will not come back if what is stored there is read and then let go.",
        grown,
        fix=f"{name}.clear()" if container_of(verdict.held_by) else f"{name} = None",
    )
    if all(_SCALAR.search(tensor) for culprit in verdict.culprits for tensor in culprit.tensors):
        number = Remedy(
            "Store numbers, not tensors",
            "A number needs no GPU memory and holds no graph.",
            grown,
            "Each .item() waits for the GPU: do it every few steps, not in each.",
            "value.item()",
        )
    else:
        number = Remedy(
            "Store a reduced result, or move it to the CPU",
            "The GPU keeps nothing; the host's memory grows instead if it is never cleared.",
            grown,
            "A copy for each tensor; it waits for the GPU.",
            "x.detach().cpu()",
        )
    return (first, number)


def _of_graph(verdict: GrowthVerdict, grown: int | None) -> tuple[Remedy, ...]:
    name = holder_name(verdict.held_by) or "total"
    return (
        Remedy(
            f"Detach what is kept in {name}",
            "Each step's graph is then freed with the step; the values stay the same.",
            grown,
            fix=f"{name} = {name}.detach()",
        ),
        Remedy(
            "Add up numbers, every few steps",
            "A number has no graph.",
            grown,
            "Each .item() waits for the GPU; in every step that costs more than it saves.",
            "loss.item()",
        ),
        Remedy(
            "If a hook stores it, detach there, and remove the hook when it is done with",
            "What is stored with its history keeps the graph, and the graph keeps the hook.",
            grown,
            fix="handle.remove()",
        ),
    )


def _of_hook(verdict: GrowthVerdict, grown: int | None) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Store a detached tensor in the hook",
            "What is stored with its history keeps the whole graph, and the graph keeps the hook.",
            grown,
            fix="self.g = grad_output[0].detach()",
        ),
        Remedy(
            "Remove the hook when it is not needed any more",
            "A hook that is still registered stores again in the next step.",
            None,
            fix="handle.remove()",
        ),
    )


def _of_lru_cache(verdict: GrowthVerdict, grown: int | None) -> tuple[Remedy, ...]:
    function = holder_name(verdict.held_by).removeprefix(LRU_CACHE) or "function"
    return (
        Remedy(
            "Cache per object, with weak references",
            "An lru_cache on a method belongs to the class: self is part of its key, so every "
            "object that ever called it stays alive.",
            grown,
            fix="weakref.WeakKeyDictionary()",
        ),
        Remedy(
            "Empty the cache when an object is done with",
            "It frees what has gathered; the next call computes anew.",
            grown,
            fix=f"{function.removesuffix('()')}.cache_clear()",
        ),
    )


def _of_exception(verdict: GrowthVerdict, grown: int | None) -> tuple[Remedy, ...]:
    return exception_remedies(grown)


def exception_remedies(grown: int | None) -> tuple[Remedy, ...]:
    """What helps against an exception that is kept.

    Args:
        grown: what its frames hold.
    """
    return (
        Remedy(
            "Let the exception go",
            "Its traceback keeps the frames that it came through, and these their tensors.",
            grown,
            fix="sys.last_traceback = sys.last_value = sys.last_exc = None; gc.collect()",
        ),
        Remedy(
            "Keep its text instead of the exception, and go on outside of the except block",
            "Inside the block the exception is still alive.",
            grown,
            fix="message = str(error)",
        ),
    )


def _of_ipc(verdict: GrowthVerdict, grown: int | None) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Let the other process drop what it received, then collect here",
            "A tensor that was sent stays allocated until its receiver lets go of it and "
            "ipc_collect has run here.",
            grown,
            fix="torch.cuda.ipc_collect()",
        ),
    )


def _of_garbage(verdict: GrowthVerdict, grown: int | None) -> tuple[Remedy, ...]:
    return cycle_remedies(grown)


def cycle_remedies(grown: int | None, pause_ms: float | None = None) -> tuple[Remedy, ...]:
    """What helps against reference cycles.

    Args:
        grown: what they hold now.
        pause_ms: how long a full collection takes in this job; None is not known.
    """
    cost = "A full collection walks through every object of the process."
    if pause_ms is not None:
        cost = f"A full collection takes {pause_ms:,.0f} ms here."
    return (
        Remedy(
            "Break the cycle",
            "Then memory is freed at once, by reference count, without waiting for a collection.",
            grown,
            fix="weakref.ref(...), or weakref.WeakMethod(...) for a bound method",
        ),
        Remedy(
            "Collect every few steps, or between trials",
            "It frees what waits now; the cycles come again.",
            grown,
            cost,
            "gc.collect()",
            "gc_collect",
        ),
        Remedy(
            "Freeze what is there after start-up",
            "Collections then skip it, and cost less.",
            None,
            fix="gc.collect(); gc.freeze()",
        ),
    )


def _of_data_loader(verdict: GrowthVerdict, grown: int | None) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Keep no batches and no iterators of the loader",
            "A batch that is stored anywhere stays; an iterator keeps what it has fetched ahead.",
            grown,
        ),
        Remedy("Fetch less ahead", "It bounds what waits.", None, fix="prefetch_factor=2"),
    )


def _of_cpp(verdict: GrowthVerdict, grown: int | None) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Look at what C++ can keep: objects on an autograd ctx, CUDA graphs, extensions",
            "No Python object refers to it. Tensors on ctx belong into save_for_backward; "
            "a graph that is captured anew has to be deleted first.",
            grown,
            fix="ctx.save_for_backward(...)",
        ),
    )


_BY_HOLDER: Final[dict[str, Callable[[GrowthVerdict, int | None], tuple[Remedy, ...]]]] = {
    "autograd_graph": _of_graph,
    "hook": _of_hook,
    "lru_cache": _of_lru_cache,
    "exception": _of_exception,
    "ipc": _of_ipc,
    "garbage": _of_garbage,
    "data_loader": _of_data_loader,
    "cpp": _of_cpp,
}
