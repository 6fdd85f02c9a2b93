"""What a call of ``torch.cuda.memory._record_memory_history`` asks for, in all its forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vramscope.emulation.history import Context, HistoryRequest

_CONTEXTS: Final = {
    None: Context.NEVER,
    "state": Context.STATE,
    "alloc": Context.ALLOC,
    "all": Context.ALL,
}


def read_request(arguments: Mapping[str, Any]) -> HistoryRequest | None:
    """Read the arguments by PyTorch's names, defaults filled in; ``None``: record nothing.

    Names that a release does not have yet are left out. Stacks are always those of Python:
    what ``stacks="all"`` adds are frames of C++.

    Raises:
        RuntimeError: an argument is none of its values, as PyTorch says it.
    """
    enabled = arguments["enabled"]
    clear = bool(arguments.get("clear_history", False))
    skip_actions = tuple(arguments.get("skip_actions") or ())
    if isinstance(enabled, bool):
        if not enabled:
            return None
        context = Context.STATE if arguments["record_context"] else Context.NEVER
        if arguments["trace_alloc_record_context"]:
            context = Context.ALLOC
        max_entries = int(arguments["trace_alloc_max_entries"])
        return HistoryRequest(context, max_entries, clear, skip_actions)
    _check("state", enabled, (None, "state", "all"))
    if enabled is None:
        return None
    _check("context", arguments["context"], tuple(_CONTEXTS))
    _check("stacks", arguments["stacks"], ("python", "all"))
    max_entries = int(arguments["max_entries"]) if enabled == "all" else 1
    return HistoryRequest(_CONTEXTS[arguments["context"]], max_entries, clear, skip_actions)


def _check(name: str, value: Any, allowed: tuple[str | None, ...]) -> None:
    if value not in allowed:
        words = ", ".join(map(repr, allowed))
        raise RuntimeError(f"expected {name} to be one of {words}, got {value!r}")
