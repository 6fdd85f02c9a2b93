"""Cases of the kinds FRAG and NONTORCH: fragmentation, settings, and what is not PyTorch's."""

from __future__ import annotations

from typing import Final

from tests.cases.case import Case, Expected
from tests.cases.leaks import GROWTH, NO_LEAK, SMALLER_BATCH

EXPANDABLE: Final = "expandable_segments:True"
BOTH: Final = f"{EXPANDABLE},max_split_size_mb:128"
THE_PAIR: Final = r"expandable_segments:True\S*max_split|max_split\S*expandable_segments:True"
SWITCH_IT_ON: Final = r"expandable_segments:True"

CASES: Final = (
    Case(
        "C33",
        expects=Expected(
            ("oom", "fragmentation"),
            "victim",
            says=r"fragment|in one piece|largest free",
            remedy=r"expandable_segments|first|keep",
        ),
        never=GROWTH,
        never_says=r"too (big|large)",
        ends=1,
    ),
    Case(
        "C33-culprit",
        script="C33.py",
        expects=Expected(("oom", "fragmentation"), "culprit"),
        ends=1,
    ),
    Case(
        "C35",
        expects=Expected(
            ("retention", "oversized_cache"),
            says=r"stream",
            remedy=r"record_stream|reference|AVOID_RECORD_STREAMS",
        ),
        never=(*NO_LEAK, "fragmentation"),
        needs="gpu",
    ),
    Case("C35-control", arguments=("control",), never=NO_LEAK, quiet=True, needs="gpu"),
    Case(
        "C37",
        capacity="256MiB",
        expects=Expected(("oversized_cache",), "", remedy=r"empty_cache|expandable_segments|CPU"),
        never=GROWTH,
    ),
    Case(
        "C38",
        expects=Expected(
            ("oom", "thrash", "fragmentation"),
            says=r"eval|fragment|cache|in one piece",
            remedy=r"empty_cache|evaluation batch",
        ),
        never=GROWTH,
        ends=1,
    ),
    Case("C38-control", arguments=("control",), never=("oom", *GROWTH), quiet=True),
    Case(
        # Phase 1: the dict keeps it; phase 2: only the cache does.
        "C39",
        capacity="256MiB",
        expects=Expected(("retention",), holder=r"states", remedy=r"del|drop|free"),
        never=(*GROWTH, "fragmentation"),
    ),
    Case(
        "C39-cached",
        capacity="256MiB",
        script="C39.py",
        expects=Expected(("oversized_cache",), "", remedy=r"empty_cache"),
        never=(*GROWTH, "fragmentation"),
    ),
    Case(
        "C40",
        script="C41.py",
        expects=Expected(
            ("fragmentation", "oom"),
            "",
            says=r"max_split_size|expandable_segments",
            remedy=r"max_split_size",
        ),
        never_advises=THE_PAIR,
        environment={"PYTORCH_CUDA_ALLOC_CONF": BOTH},
        ends=1,
    ),
    Case(
        "C41",
        expects=Expected(("oom",), says=r"1\.0 GiB|1,?024|more than"),
        never=("fragmentation", *GROWTH),
        never_advises=SWITCH_IT_ON,
        environment={"PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE},
        ends=1,
    ),
    Case(
        "C41-newer-variable",
        script="C41.py",
        expects=Expected(("oom",)),
        never_advises=SWITCH_IT_ON,
        environment={"PYTORCH_ALLOC_CONF": EXPANDABLE},
        ends=1,
    ),
    Case(
        "C41-nothing-in-pieces",
        script="C41.py",
        expects=Expected(("oom",)),
        never_advises=SWITCH_IT_ON,
        ends=1,
    ),
    Case(
        "C43",
        expects=Expected(
            ("non_torch_memory",),
            or_named=r"NCCL",
            says=r"NCCL|group|communicat",
            remedy=r"group|BUFFSIZE",
        ),
        never=(*GROWTH, "fragmentation"),
        needs="gpu",
    ),
    Case(
        "C64",
        expects=Expected(("oversized_cache",), "", remedy=r"empty_cache"),
        never=("fragmentation", *GROWTH),
        never_advises=SMALLER_BATCH,
        needs="gpu",
    ),
)
