"""Findings of a generated run, in the shapes that the API sends."""

from __future__ import annotations

from typing import Any

from tests.support.page_scenario import GIB, Scenario

MIB = 1 << 20
SLOPE_BYTES = 3.1 * MIB


def finding(scenario: Scenario, kind: str, severity: str, **more: Any) -> dict[str, Any]:
    """Any finding; what is not given is as if nothing was known of it."""
    opened_ns = int((scenario.created_s - 0.8 * scenario.age_s) * 1e9)
    made: dict[str, Any] = {
        "id": f"{kind}-{scenario.name}",
        "run": scenario.id,
        "rank": 0,
        "ranks": [0],
        "kind": kind,
        "severity": severity,
        "stage": "confirmed",
        "subject": "",
        "confidence": 1.0,
        "summary": kind,
        "detail": "",
        "evidence": {},
        "culprits": [],
        "remedies": [],
        "since_step": None,
        "life": 0,
        "step_offset": 0,
        "state": "open",
        "opened_ns": opened_ns,
        "confirmed_ns": None,
        "resolved_ns": None,
        "muted": None,
        "history": [
            {"time_ns": opened_ns, "what": "opened", "severity": severity, "summary": kind}
        ],
    }
    return made | more


def leak(scenario: Scenario, **more: Any) -> dict[str, Any]:
    """A leak of ``scenario.growth_gib`` a step from step 310 on, confirmed at a line."""
    grown_bytes = int(scenario.growth_gib * (scenario.last_step() - 310) * GIB)
    slope_bytes = scenario.growth_gib * GIB
    left_bytes = 0.1 * scenario.limit_gib * GIB
    steps = max(200, int(left_bytes / slope_bytes))
    forecast = {
        "early_s": 0.9 * steps * scenario.step_s,
        "late_s": 1.15 * steps * scenario.step_s,
        "early_steps": int(0.9 * steps),
        "late_steps": int(1.15 * steps),
        "at_step": scenario.last_step(),
        "confidence": 0.95,
        "limit_bytes": int(scenario.limit_gib * GIB),
    }
    minutes = f"{forecast['early_s'] / 60:.0f} to {forecast['late_s'] / 60:.0f} minutes"
    return (
        finding(
            scenario,
            "leak",
            "critical",
            subject="train.py:56",
            confidence=0.97,
            summary=f"Leaking {slope_bytes / MIB:.1f} MiB per step at train.py:56. "
            f"Out of memory in {minutes}.",
            detail="Since step 310 every step keeps one loss and its graph alive in "
            f"`meter.values`: {grown_bytes / GIB:.1f} GiB so far. Append `loss.detach()` instead.",
            since_step=310,
            evidence={
                "title": "Loss graphs kept in a list",
                "series": "allocated_bytes.all.current",
                "since_step": 310,
                "slope_bytes_per_step": slope_bytes,
                "grown_bytes": grown_bytes,
                "tensors": scenario.last_step() - 310,
                "share": 1.0,
                "forecast": forecast,
                "facts": [
                    "4,498 of 4,502 steps rose.",
                    "Two looks 20 steps apart differ by 20 blocks of 3.1 MiB, all from this line.",
                ],
                "source": {
                    "file": "train.py",
                    "first_line": 54,
                    "line": 56,
                    "lines": [
                        "loss.backward()",
                        "opt.step(); opt.zero_grad()",
                        "meter.values.append(loss)",
                        "if step % 50 == 0:",
                    ],
                },
            },
            culprits=[
                {
                    "file": "/home/ada/train.py",
                    "line": 56,
                    "function": "main",
                    "bytes": grown_bytes,
                    "bytes_per_step": slope_bytes,
                    "tensors": ["float32[]"],
                    "held_by": ["Trainer.meter", "Meter.values", "list of 4,502", "Tensor.grad_fn"],
                }
            ],
            remedies=[
                remedy(
                    "Append `loss.detach()`",
                    "Stops the growth. Nothing that can be run does this",
                    grown_bytes,
                    fix="meter.values.append(loss.detach())",
                ),
                remedy(
                    "Free the cache",
                    "Gains about 4 minutes, does not stop the leak",
                    None,
                    command="empty_cache",
                    cost="the next step is slower",
                ),
            ],
        )
        | more
    )


def other_process(scenario: Scenario, **more: Any) -> dict[str, Any]:
    """Somebody else's memory on the same device."""
    return finding(
        scenario,
        "other_process",
        "warning",
        subject="pid 4123",
        summary="8.4 GiB belong to another process (pid 4123, jupyter); 3.6 GiB are left.",
        detail="It was there before the run began and does not grow.",
        evidence={"pid": 4123, "bytes": int(8.4 * GIB)},
        remedies=[remedy("End it, or move it to another GPU", "Frees 8.4 GiB", int(8.4 * GIB))],
        **more,
    )


def past(scenario: Scenario, **more: Any) -> dict[str, Any]:
    """A finding that is over."""
    opened_ns = int((scenario.created_s - 0.7 * scenario.age_s) * 1e9)
    resolved_ns = opened_ns + 180 * 10**9
    return finding(
        scenario,
        "thrash",
        "warning",
        summary="Slow: the cache was flushed 41 times in 100 steps, 38 % of the step time.",
        opened_ns=opened_ns,
        resolved_ns=resolved_ns,
        state="resolved",
        history=[
            {"time_ns": opened_ns, "what": "opened", "severity": "warning", "summary": ""},
            {"time_ns": resolved_ns, "what": "resolved", "severity": "warning", "summary": ""},
        ],
        **more,
    )


def remedy(
    action: str,
    why: str,
    predicted_bytes: int | None,
    *,
    cost: str = "",
    fix: str = "",
    command: str = "",
) -> dict[str, Any]:
    """Something that would help."""
    return {
        "action": action,
        "why": why,
        "predicted_bytes": predicted_bytes,
        "cost": cost,
        "fix": fix,
        "command": command,
    }


def top_finding(findings: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The most urgent one as the list of runs has it."""
    weight = {"critical": 0, "warning": 1, "info": 2}
    shown = [one for one in findings if one["state"] != "resolved" and not one["muted"]]
    if not shown:
        return None
    first = min(shown, key=lambda one: (weight[one["severity"]], -one["opened_ns"]))
    keys = ("id", "kind", "severity", "stage", "summary", "state")
    return {key: first[key] for key in keys} | {"forecast": first["evidence"].get("forecast")}


def mute(one: dict[str, Any], body: dict[str, Any] | None, now_ns: int) -> dict[str, Any]:
    """The same finding, muted or no longer."""
    one["muted"] = (
        None if body is None else {**body, "by": "ada@host", "time_ns": now_ns, "until_ns": None}
    )
    what = "muted" if body else "unmuted"
    one["history"].append(
        {"time_ns": now_ns, "what": what, "severity": one["severity"], "summary": one["summary"]}
    )
    return one
