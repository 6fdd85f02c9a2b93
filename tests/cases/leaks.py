"""Cases of the kind LEAK: true leaks and retention that nobody wanted."""

from __future__ import annotations

from typing import Final

from tests.cases.case import Case, Expected

GROWTH: Final = ("leak", "cycle_growth", "retained_exception")
NO_LEAK: Final = (*GROWTH, "near_oom")
NO_GPU_LEAK: Final = ("leak", "near_oom", "oom", "cycle_growth")
FALLS: Final = (
    "where memory falls every few steps, a busy machine may leave too few looks between two falls "
    "to name the line of the cycle"
)
SMALLER_BATCH: Final = r"(smaller|lower|reduce|halve|cut).{0,20}batch|batch.{0,30}smaller"

CASES: Final = (
    Case(
        "C01a",
        script="C01a.py",
        expects=Expected(
            ("host_growth", "leak"),
            holder=r"\btotal\b",
            says=r"graph|history",
            remedy=r"detach",
        ),
        never=("fragmentation", "cycle_growth"),
        never_says=r"GPU (leak|memory)",
        never_advises=rf"{SMALLER_BATCH}|empty_cache",
    ),
    Case(
        "C01b",
        script="C01b.py",
        expects=Expected(("leak",), holder=r"\btotal\b", says=r"graph|history", remedy=r"detach"),
        never=("fragmentation", "cycle_growth"),
        never_advises=rf"{SMALLER_BATCH}|empty_cache",
    ),
    Case(
        "C06",
        expects=Expected(
            ("retention",),
            holder=r"\bouts\b",
            says=r"evaluation|\beval",
            remedy=r"CPU|reduc|return nothing",
        ),
        never=GROWTH,
        never_advises=r"no_grad",
    ),
    Case(
        "C08",
        expects=Expected(
            ("leak",),
            holder=r"results.*acc|results.*pck",
            says=r"evaluation|every 50 steps",
            remedy=r"clear|empty",
        ),
        never=("retention", "cycle_growth"),
        never_says=r"bounded|goes back",
    ),
    Case(
        "C09",
        # The call, or what the function that is called does with it.
        expects=Expected(
            ("leak",), or_named=r"\bupdate\b", holder=r"preds|target", remedy=r"reset|CPU|clear"
        ),
        never=("cycle_growth",),
        never_says=r"graph|bug",
    ),
    Case(
        "C11",
        expects=Expected(("leak",), or_named=r"\bgrid\b", holder=r"lru_cache", remedy=r"cache"),
        never=("cycle_growth",),
        never_says=r"model (is growing|grows)",
    ),
    Case(
        "C12",
        expects=Expected(
            ("cycle_growth",),
            or_named=r"\bwhich\b",
            says=r"cycle|garbage|collect",
            remedy=r"weak|break|gc\.collect",
        ),
        never=("leak", "near_oom"),
        never_says=r"permanent|bug",
        sometimes=FALLS,
    ),
    Case(
        "C14",
        expects=Expected(
            ("cycle_growth",),
            or_named=r"\bCycle\b",
            says=r"cycle|garbage|collect",
            remedy=r"break|weak|gc\.(collect|freeze)",
        ),
        never=("leak", "near_oom"),
    ),
    Case(
        "C16",
        expects=Expected(
            ("leak",), or_named=r"\bCam\.g\b|\bkeep\b|'g'", says=r"graph|hook", remedy=r"detach"
        ),
        never=("fragmentation",),
        never_says=r"gc\.collect\(\) (frees|suffices|helps)",
    ),
    Case(
        "C17",
        expects=Expected(
            ("cycle_growth",),
            or_named=r"\binner\b",
            says=r"cycle|garbage|collect",
            remedy=r"break|weak|use_reentrant|capture|gc\.collect",
        ),
        never=("leak", "near_oom"),
        never_says=r"checkpoint\w* leaks",
        sometimes=FALLS,
    ),
    Case(
        # Here, as measured, the collector does free it.
        "C18",
        expects=Expected(
            ("leak", "cycle_growth"),
            or_named=r"\bfcn\b|\bsol\b",
            says=r"graph|cycle|garbage|ctx",
            remedy=r"detach|save_for_backward|break|weak",
        ),
        never=("fragmentation",),
        sometimes=FALLS,
    ),
    Case(
        "C19",
        expects=Expected(("retention",), says=r"graph", remedy=r"no_grad|detach"),
        never=GROWTH,
    ),
    Case(
        "C21",
        expects=Expected(
            ("leak",), or_named=r"Session\.opts", holder=r"opts", remedy=r"clear|free|opts|empty"
        ),
        never=("first_step_state", "cycle_growth"),
    ),
    Case(
        "C22",
        expects=Expected(
            ("retention",),
            or_named=r"\.(input|output)\b",
            holder=r"\b(input|output)\b",
            remedy=r"del",
        ),
        never=GROWTH,
        never_says=r"hook is (still )?registered",
    ),
    Case(
        "C23",
        expects=Expected(
            ("retention", "near_oom", "oversized_cache"),
            or_named=r"autocast",
            says=r"autocast",
            remedy=r"cache_enabled=False|smaller region",
        ),
        never=NO_LEAK,
        never_says=r"activations|autograd",
    ),
    Case(
        "C25",
        expects=Expected(
            ("leak", "retention"), holder=r"IPC|another process", remedy=r"ipc_collect"
        ),
        never=("cycle_growth",),
        never_says=r"autograd|graph",
        needs="gpu",
    ),
    Case("C26", never=NO_LEAK, quiet=True, needs="gpu"),
    Case(
        "C27",
        expects=Expected(
            ("host_growth",),
            or_named=r"\blog\b",
            holder=r"rows",
            remedy=r"item\(\)|number|detach",
        ),
        never=("leak", "near_oom"),
        never_says=r"GPU leak|device memory grows",
        emulated=False,
    ),
    Case(
        "C28",
        expects=Expected(
            ("retention",), or_named=r"model1|opt1", holder=r"model1|opt1", remedy=r"del|rebind"
        ),
        never=GROWTH,
        never_says=r"refuses",
    ),
    Case(
        "C29",
        expects=Expected(("retention",), holder=r"\bstate\b", remedy=r"map_location|del"),
        never=GROWTH,
    ),
    Case("C29-control", arguments=("control",), never=(*GROWTH, "retention"), quiet=True),
    Case(
        # What workers copy is looked at a few times a minute, so that it costs next to nothing.
        "C30",
        arguments=("2000",),
        expects=Expected(
            ("host_growth",), "", says=r"worker", remedy=r"array|fewer|num_workers|serial"
        ),
        never=NO_GPU_LEAK,
        never_says=r"GPU leak|out of (GPU|CUDA) memory",
        never_advises=SMALLER_BATCH,
    ),
    Case(
        "C30-short",
        arguments=("150",),
        never=NO_GPU_LEAK,
        never_says=r"GPU leak|out of (GPU|CUDA) memory",
        never_advises=SMALLER_BATCH,
        quiet=True,
    ),
)
