"""What a person reads fits a terminal and leaves out what is not known."""

from __future__ import annotations

from typing import Any

from vramscope.cli.diagnose_text import WIDTH, diagnose_text

MIB = 1 << 20
FINDING: dict[str, Any] = {
    "kind": "leak",
    "severity": "critical",
    "stage": "confirmed",
    "confidence": 0.9,
    "summary": "Leaking 3.1 MiB per step at train.py:56. Out of memory in 26 to 34 minutes.",
    "detail": "It began at step 40 and has not stopped since.",
    "ranks": [0],
    "culprits": [
        {
            "file": "/home/me/train.py",
            "line": 56,
            "function": "train_step",
            "bytes": 40 * MIB,
            "bytes_per_step": 3.1 * MIB,
            "tensors": ["float32[512, 1024]"],
            "held_by": ["list of 40", "Trainer.results['acc']"],
        }
    ],
    "remedies": [
        {
            "action": "keep numbers, not tensors",
            "why": "the list grows with every step",
            "predicted_bytes": 40 * MIB,
            "cost": "",
            "fix": "self.results.append(loss.item())",
        },
        {
            "action": "clear the list",
            "why": "",
            "predicted_bytes": None,
            "cost": "forgets",
            "fix": "",
        },
    ],
}
RUN = {"id": "abc", "name": "train", "state": "live", "step": 1200, "world_size": 1}


def text(*findings: dict[str, Any], **more: Any) -> str:
    return diagnose_text({"source": "a.json", "of": "report", "findings": list(findings), **more})


def test_a_finding_has_its_lines_and_remedies_in_columns() -> None:
    assert text(FINDING) == (
        "a.json · report · 1 critical\n"
        "\n"
        "CRITICAL  Leaking 3.1 MiB per step at train.py:56. Out of memory in 26 to 34\n"
        "          minutes.\n"
        "          Rank 0. It began at step 40 and has not stopped since.\n"
        "line      /home/me/train.py:56 train_step; 40 MiB; 3.10 MiB per step;\n"
        "          float32[512, 1024]; held by list of 40 ← Trainer.results['acc']\n"
        "remedies  1. Keep numbers, not tensors (frees 40 MiB)\n"
        "             The list grows with every step.\n"
        "             self.results.append(loss.item())\n"
        "          2. Clear the list\n"
        "             Costs: forgets."
    )


def test_a_run_says_how_it_is_doing() -> None:
    head = text(FINDING, run=RUN, judged_ns=5).splitlines()[0]
    assert head == "train · run abc · live · step 1,200 · 1 critical"
    assert text(run=RUN, judged_ns=5).endswith("nothing found")
    assert text(run=RUN, judged_ns=None).endswith("not judged yet")
    assert text().endswith("report · nothing found")


def test_what_is_suspected_says_so_and_many_ranks_are_cut() -> None:
    suspected = {**FINDING, "stage": "suspected", "ranks": list(range(12))}
    shown = text(suspected)
    words = " ".join(shown.split())
    assert "Suspected, not yet sure. Ranks 0, 1, 2, 3, 4, 5, 6, 7 and 4 more." in words


def test_a_holder_without_a_line_is_no_line() -> None:
    culprit = {"file": "", "line": 0, "bytes": 5 * MIB, "held_by": ["kept"]}
    assert "holder    5 MiB; held by kept" in text({**FINDING, "culprits": [culprit]})


def test_only_what_is_to_be_copied_is_wider_than_a_terminal() -> None:
    fix = "x" * 100
    long = {**FINDING, "detail": "word " * 60, "remedies": [{**FINDING["remedies"][0], "fix": fix}]}
    wide = [line for line in text(long).splitlines() if len(line) > WIDTH]
    assert wide == [" " * 13 + fix]


def test_what_an_older_server_does_not_say_is_left_out() -> None:
    bare = {"kind": "oom", "severity": "warning", "summary": "Something is wrong."}
    assert text(bare) == "a.json · report · 1 warning\n\nWARNING   Something is wrong."


def test_what_a_job_calls_itself_does_not_steer_the_terminal() -> None:
    culprit = {"file": "a\x1b]0;b\x07.py", "line": 5, "function": "f\x9b2J"}
    told = text(FINDING | {"summary": "It\x1b[31m grows.\r", "culprits": [culprit]})
    assert all(c.isprintable() or c == "\n" for c in told)
    assert "a?]0;b?.py:5" in told
