"""Cases of the kind FALSE, growth that is no leak, and of the kind OOM."""

from __future__ import annotations

from typing import Final

from tests.cases.case import Case, Expected
from tests.cases.leaks import GROWTH, NO_LEAK, SMALLER_BATCH

CASES: Final = (
    Case(
        "C50",
        expects=Expected(
            ("oom",),
            "",
            says=r"others peaked|than (usual|before|any)|single|longest",
            remedy=r"truncat|filter|bucket|longest|checkpoint",
        ),
        never=GROWTH,
        never_suspected=GROWTH,
    ),
    Case("C52", never=GROWTH, never_suspected=GROWTH),
    Case("C54", never=GROWTH, never_suspected=GROWTH),
    Case("C55", never=GROWTH, never_suspected=GROWTH, never_advises=r"empty_cache"),
    Case(
        "C56",
        expects=Expected(
            ("retention",),
            or_named=r"\bpreds\b",
            says=r"evaluation|\beval",
            remedy=r"argmax|CPU|reduc|accumulation",
        ),
        never=NO_LEAK,
        never_suspected=GROWTH,
    ),
    Case(
        "C58",
        expects=Expected(
            ("retained_exception", "retention"),
            "",
            holder=r"last_(traceback|value|exc)",
            remedy=r"last_(traceback|value|exc)",
        ),
        never=("leak", "cycle_growth"),
    ),
    Case(
        "C59",
        expects=Expected(
            ("oom",),
            or_named=r"\bNode\b",
            says=r"garbage|collect",
            remedy=r"gc\.collect|break|weak|cycle",
        ),
        never=("leak",),
        never_advises=SMALLER_BATCH,
        ends=1,
    ),
    Case("C59-control", arguments=("control",), never=("oom", "leak")),
    Case(
        "C61",
        expects=Expected(("oom",), remedy=r"maximum|largest|probe|most|truncat|limit"),
        never=GROWTH,
        ends=1,
    ),
    Case(
        "C63",
        expects=Expected(
            ("oom",), says=r"evaluation|\beval", remedy=r"evaluation batch|eval\w*.{0,30}batch"
        ),
        never=GROWTH,
        never_advises=r"(smaller|lower|reduce|halve) (the )?(training )?batch\b(?! of the eval)",
    ),
    Case(
        "C72",
        expects=Expected(("oom",)),
        # What is held by the very exception that is being reported was not left from before.
        never=GROWTH,
        never_says=r"traceback",
        ends=1,
    ),
    Case("C81", never=GROWTH, quiet=True, never_advises=r"gc\.collect|empty_cache"),
)
