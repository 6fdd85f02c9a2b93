"""Who holds memory, in words: a name to recognise, and a title."""

from __future__ import annotations

import re
from typing import Final

from vramscope_analysis.diagnosis.growth_group import LRU_CACHE
from vramscope_analysis.diagnosis.growth_verdict import GrowthVerdict

_CONTINUES: Final = re.compile(r"^[.\[(]")
_CONTAINER: Final = re.compile(
    r"^(?:list|dict|set|tuple|deque|defaultdict|OrderedDict|frozenset)\b"
)


def holder_name(chain: tuple[str, ...]) -> str:
    """The name of a holder, without what lies between it and the tensor: ``T.results['acc']``."""
    if not chain:
        return ""
    name = chain[0]
    if name.startswith(LRU_CACHE):
        return name  # what follows is a key of the cache
    for word in chain[1:]:
        if not _CONTINUES.match(word):
            break
        name += word
    return name


def container_name(chain: tuple[str, ...]) -> str:
    """The name of the container as the code that fills it writes it: in a generator, its variable.

    Args:
        chain: from the name that a person knows to the tensor.
    """
    name = holder_name(chain[:1])
    for word in chain[1:]:
        if _CONTINUES.match(word):
            name += word
        elif word.isidentifier() and not _CONTAINER.match(word):
            name = word
        else:
            break
    return name


def container_of(chain: tuple[str, ...]) -> str:
    """The container in which tensors gather: ``list``, ``dict``; empty if there is none."""
    for word in chain:
        found = _CONTAINER.match(word)
        if found:
            return found.group()
    return ""


def title_of(verdict: GrowthVerdict) -> str:
    """A short title in the user's words."""
    name = holder_name(verdict.held_by)
    titles = {
        "autograd_graph": f"Graph history kept by {name}" if name else "Graph history is kept",
        "hook": "A hook keeps tensors",
        "lru_cache": f"Kept by the {name}" if name else "An lru_cache keeps tensors",
        "exception": "An exception keeps its frames alive",
        "ipc": "Shared with another process",
        "garbage": "Reference cycles",
        "data_loader": "A data loader keeps batches",
        "cpp": "Held from C++, by no Python object",
    }
    if verdict.holder in titles:
        return titles[verdict.holder]
    if is_metric(verdict):
        return f"Metric state kept in {name}"
    return f"Tensors kept in {name}" if name else "Tensors are kept"


def is_metric(verdict: GrowthVerdict) -> bool:
    """Whether a method ``update`` stores, or a class that calls itself a metric."""
    functions = {culprit.function.rpartition(".")[2] for culprit in verdict.culprits}
    return "update" in functions or any("metric" in word.lower() for word in verdict.held_by[:1])
