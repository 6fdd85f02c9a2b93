"""Reports of running out of memory of a generated run, in the shapes that the API sends."""

from __future__ import annotations

from typing import Any

from tests.support.page_findings import finding, remedy
from tests.support.page_scenario import GIB, Scenario

MIB = 1 << 20
STEPS = 31
PEAK_OF_STEP = {0: 410, 30: 2490}
LINES = [
    ("train.py", 20, "forward", 1001, 36, "activations"),
    ("train.py", 21, "forward", 284, 12, "activations"),
    ("", 0, "backward", 229, 2, "gradients"),
    ("train.py", 30, "gpt_step", 197, 2, "activations"),
    ("train.py", 28, "forward", 197, 1, "activations"),
    ("train.py", 64, "convert", 64, 75, "parameters"),
]


def oom(scenario: Scenario, **more: Any) -> dict[str, Any]:
    """The answer of ``/ooms/{id}``: 3 GiB allowed, 198 MiB asked for, 166 MiB left."""
    time_ns = scenario.end_ns - 10**9
    row: dict[str, Any] = {
        "id": f"oom-{scenario.name}",
        "run": scenario.id,
        "rank": 0,
        "time_ns": time_ns,
        "received_ns": time_ns,
        "step": STEPS,
        "phase": "",
        "part": "forward",
        "thread": "MainThread",
        "source": "observer",
        "detail": "full",
        "skipped": 0,
        "request_bytes": 198 * MIB,
        "segment_bytes": 198 * MIB,
        "allowed_bytes": 3 * GIB,
        "device_free_bytes": 136 * GIB,
        "message": "CUDA out of memory. Tried to allocate 198.00 MiB. GPU 0 has a total capacity "
        "of 139.80 GiB of which 134.00 GiB is free. Process 539 has 1.03 GiB memory in use.",
        "is_fatal": True,
        "recovered_step": None,
        "linked_to": None,
        "state": "complete",
        "summary": "Out of memory at step 31: asked for 198 MiB, the largest piece left was "
        "166 MiB.",
        "severity": "critical",
    } | more
    report = {
        **report_of(scenario, time_ns),
        **{key: row[key] for key in ("part", "source", "message")},
    }
    return row | {
        "siblings": [],
        "report": report,
        "finding": None if row["linked_to"] else oom_finding(scenario, row),
    }


def oom_finding(scenario: Scenario, row: dict[str, Any]) -> dict[str, Any]:
    """What is said of it."""
    return finding(
        scenario,
        "oom",
        row["severity"],
        summary=row["summary"],
        detail="In `cross_entropy` called from train.py:30. 587 MiB were free in all, but in "
        "pieces. Activations grew 70 MiB with every step.",
        state="final",
        resolved_ns=scenario.end_ns,
        opened_ns=row["time_ns"],
        evidence={
            "report": row["id"],
            "cause": "growing_demand",
            "recovered_step": row["recovered_step"],
            "tried": [
                {
                    "settings": "max_split_size_mb:128",
                    "outcome": "fails at step 33 instead of 31",
                    "is_worth_it": False,
                }
            ],
        },
        remedies=[
            remedy(
                "Bound the size of a batch: cap or bucket the length",
                "Stops the growth of 70 MiB a step. No allocator setting does",
                None,
                fix="batch = [one[:1024] for one in batch]",
            ),
            remedy(
                "Recompute attention: checkpoint `train.py:27`",
                "36 blocks, 1,001 MiB at this moment",
                900 * MIB,
                cost="the backward pass gets slower",
                fix="checkpoint(self.attention, x, use_reentrant=False)",
            ),
        ],
    )


def report_of(scenario: Scenario, time_ns: int) -> dict[str, Any]:
    """What was known at that moment."""
    peaks = [PEAK_OF_STEP[0] + 69 * step for step in range(STEPS)]
    reserved = [min(2906, 460 + (peak * 115 // 100) // 40 * 40) for peak in peaks]
    retries = [max(0, (step - 19) // 2) for step in range(STEPS)]
    step_ns = int(scenario.step_s * 1e9)
    return {
        "time_ns": time_ns,
        "step": STEPS,
        "phase": "",
        "thread": "MainThread",
        "message": "",
        "complete": True,
        "notes": [],
        "emulated": scenario.emulated,
        "device_name": scenario.device_name,
        "request_bytes": 198 * MIB,
        "segment_bytes": 198 * MIB,
        "allowed_bytes": 3 * GIB,
        "device_free_bytes": 136 * GIB,
        "device_total_bytes": int(scenario.limit_gib * GIB),
        "counters": {
            "allocated_bytes.all.current": 2485 * MIB,
            "active_bytes.all.current": 2485 * MIB,
            "reserved_bytes.all.current": 2906 * MIB,
            "num_alloc_retries": retries[-1] + 1,
        },
        "free_blocks": [
            {
                "pool": "large",
                "stream": 0,
                "bytes": 421 * MIB,
                "count": 61,
                "largest_bytes": 154 * MIB,
                "returnable_bytes": 0,
            }
        ],
        "by_stack": [
            {
                "file": f"/home/ada/{file}" if file else "",
                "line": line,
                "function": function,
                "bytes": size * MIB,
                "count": count,
                "category": category,
            }
            for file, line, function, size, count, category in LINES
        ],
        "by_size": [],
        "by_category": {
            "category.parameters_bytes": 64 * MIB,
            "category.gradients_bytes": 229 * MIB,
            "category.optimizer_state_bytes": 128 * MIB,
        },
        "largest": [],
        "garbage_bytes": 0,
        "processes": [{"pid": 539, "command": "python", "bytes": 1055 * MIB, "own": True}],
        "outside": [{"name": "CUDA context", "bytes": 540 * MIB}],
        "samples": {"time_ns": [], "number": [], "columns": {}},
        "steps": {
            "time_ns": [time_ns - (STEPS - step) * step_ns for step in range(STEPS)],
            "number": list(range(STEPS)),
            "columns": {
                "step.peak_allocated_bytes": [peak * MIB for peak in peaks],
                "step.peak_reserved_bytes": [peak * MIB for peak in reserved],
                "num_alloc_retries": retries,
            },
        },
        "settings": "",
        "threads": [
            {
                "name": "MainThread",
                "raised": True,
                "is_own": False,
                "frames": [
                    {
                        "file": "/lib/torch/nn/functional.py",
                        "line": 3104,
                        "function": "cross_entropy",
                    },
                    {"file": "/home/ada/train.py", "line": 30, "function": "gpt_step"},
                ],
            }
        ],
        "recovered_step": None,
    }
