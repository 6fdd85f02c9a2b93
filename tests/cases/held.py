"""What is expected of the jobs of ``held_out.py``."""

from __future__ import annotations

from typing import Final

from tests.cases.case import Case, Expected
from tests.cases.leaks import GROWTH, NO_LEAK


def _leak(name: str, holder: str, kind: str = "leak", remedy: str = "", wrong: str = "") -> Case:
    expected = Expected((kind,), f"culprit {name}", holder=holder, remedy=remedy)
    never = tuple(each for each in (*GROWTH, "fragmentation") if each != kind)
    return Case(f"held-{name}", "held_out.py", (name,), expected, never, wrong=wrong)


def _clean(name: str, wrong: str = "") -> Case:
    return Case(
        f"held-{name}",
        "held_out.py",
        (name,),
        never=NO_LEAK,
        never_suspected=GROWTH,
        quiet=True,
        wrong=wrong,
    )


CASES: Final = (
    _leak("global_dict", r"\bSEEN\b"),
    _leak("closure", r"\bhistory\b"),
    _leak("hook", r"window"),
    _leak("losses_of_epoch", r"\blosses\b", remedy=r"detach|item"),
    _leak(
        "tree",
        r"parent|children|Node",
        "cycle_growth",
        wrong="the cycle is named in full, but with the line that puts the tensor into it, not "
        "with the one that closes it",
    ),
    _clean("bounded_window"),
    _clean("weak_cache"),
    _clean(
        "finder",
        wrong="a search for the batch size that nobody has written before is not known to be one: "
        "that it ran out is a warning, and the head-room is called tight by its last step",
    ),
    _clean("sorted_lengths"),
)
