"""The command about when Python collects garbage by itself: ``set_gc_thresholds``."""

from __future__ import annotations

import gc
from typing import Any, Final

from vramscope.commands.call import Call, Handler
from vramscope_protocol.commands import Receipt

_MAX_THRESHOLD: Final = (1 << 31) - 1


def garbage_collector_handlers() -> dict[str, Handler]:
    """The commands about Python's garbage collector, by name."""
    return {"set_gc_thresholds": _set_gc_thresholds}


def _set_gc_thresholds(call: Call) -> Receipt:
    thresholds: list[int] = call.params.thresholds
    enabled: bool | None = call.params.enabled
    before = _state()
    if not thresholds and enabled is None:
        text = "expected thresholds, or whether it is enabled, got neither. Nothing was changed."
        return Receipt("refused", before=before, message=text)
    if any(each > _MAX_THRESHOLD for each in thresholds):
        text = f"expected thresholds up to {_MAX_THRESHOLD}. Nothing was changed."
        return Receipt("refused", before=before, message=text)
    if thresholds:
        gc.set_threshold(*thresholds)
    if enabled is not None:
        (gc.enable if enabled else gc.disable)()
    after = _state()
    return Receipt("done", before=before, after=after, message=_words(after))


def _state() -> dict[str, Any]:
    return {"enabled": gc.isenabled(), "thresholds": list(gc.get_threshold())}


def _words(state: dict[str, Any]) -> str:
    thresholds = ", ".join(map(str, state["thresholds"]))
    if not state["enabled"]:
        return f"Python collects no garbage by itself any more (thresholds {thresholds})."
    if state["thresholds"][0] == 0:
        return "The first threshold is 0: Python collects no garbage by itself."
    return f"Python collects garbage by itself, with the thresholds {thresholds}."
