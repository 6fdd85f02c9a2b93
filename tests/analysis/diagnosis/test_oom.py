"""Reports become findings: how severe, of whom, and how often."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.analysis.diagnosis.test_oom_causes import LEVEL
from tests.analysis.diagnosis.test_oom_place import SITE, USER
from tests.analysis.diagnosis.test_oom_remedies import growth_report
from tests.support.made_ooms import MIB, asking, made_oom, step_rows, tensor
from vramscope_analysis.diagnosis.oom import diagnose_oom, oom
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.run_evidence import RankEvidence

TRAIN = (asking(USER),)


def at(step: int, **fields: Any) -> OomReport:
    report = made_oom(LEVEL, threads=TRAIN, **fields)
    return replace(report, step=step, time_ns=step * 10**9, id=f"r{step}")


def test_what_ended_a_job_is_critical_and_what_it_survived_a_warning() -> None:
    assert diagnose_oom(at(31)).severity == "critical"
    assert diagnose_oom(at(31, recovered_step=32)).severity == "warning"
    assert diagnose_oom(at(31, source="counter")).severity == "warning"


def test_a_search_for_the_batch_size_runs_out_on_purpose() -> None:
    search = asking(USER, (f"{SITE}/accelerate/utils/memory.py", 1, "decorator"))
    report = made_oom(threads=(search,), recovered_step=1)
    assert diagnose_oom(report).severity == "info"


def test_the_line_that_asked_is_culprit_and_subject() -> None:
    finding = diagnose_oom(at(31))
    assert finding.subject == "train.py:30"
    assert [(c.line, c.bytes) for c in finding.culprits] == [(30, 200 * MIB)]
    assert (finding.kind, finding.since_step) == ("oom", 31)


def test_the_same_line_again_is_the_same_finding_and_counts() -> None:
    reports = (at(5, recovered_step=6), at(50, skipped=3), at(9, recovered_step=10))
    (finding,) = oom(RankEvidence(0, ooms=reports))
    assert finding.evidence["report"] == "r50"
    assert (finding.evidence["times"], finding.evidence["reports"]) == (6, ["r5", "r9", "r50"])
    assert finding.detail.endswith("It happened 6 times since step 5.")
    assert finding.severity == "critical"


def test_another_line_is_another_finding() -> None:
    other = made_oom(LEVEL, threads=(asking(("/a/eval.py", 3, "f")),))
    assert len(oom(RankEvidence(0, ooms=(at(5), other)))) == 2
    assert oom(RankEvidence(0)) == []


def test_tensors_of_a_traceback_are_named() -> None:
    frame = {"file": "/a/train.py", "line": 8, "function": "big"}
    held = tensor("uint8[9]", 100, "exception")
    held = {**held, "holder": {**held["holder"], "frame": frame}}
    culprit = diagnose_oom(made_oom(LEVEL, largest=(held,))).culprits[0]
    assert (culprit.line, culprit.function, culprit.bytes) == (8, "big", 100 * MIB)
    assert (culprit.tensors, culprit.held_by) == (("uint8[9]",), ("list of 2", "kept"))


def test_growth_is_blamed_on_the_line_that_allocates_it() -> None:
    floors = [100, 100, 100, *(100 + 15 * n for n in range(40))]
    report = made_oom(step_rows([f + 300 for f in floors], floors), threads=TRAIN)
    rank = RankEvidence(0, growth=growth_report())
    first, asked = diagnose_oom(report, rank).culprits
    assert (first.line, first.held_by[0], asked.line) == (56, "kept", 30)


def test_what_lies_between_the_pieces_is_named_with_its_holder() -> None:
    block = {"requested_bytes": 17 * MIB, "count": 6, "bytes": 102 * MIB}
    large = {"pool": "large", "bytes": 300 * MIB, "largest_bytes": 30 * MIB, "pinned_by": [block]}
    report = made_oom(
        step_rows([800] * 30),
        allocated_mib=600,
        pieces_mib=300,
        free_blocks=(large,),
        largest=(tensor("uint8[17825792]", 17, "local"),),
    )
    culprit = diagnose_oom(report).culprits[0]
    assert culprit.tensors == ("6 blocks of 17.0 MiB: uint8[17825792]",)
    assert (culprit.bytes, culprit.held_by) == (102 * MIB, ("list of 2", "kept"))


def test_a_card_has_a_title_and_facts() -> None:
    evidence = diagnose_oom(at(31)).evidence
    assert evidence["title"] == "One step needs far more than the others"
    assert evidence["facts"][0] == "76.0 MiB were missing for a request of 200 MiB."
    assert diagnose_oom(OomReport(step=5)).evidence["facts"] == []


def test_evidence_is_plain_json_and_says_what_is_not_known() -> None:
    evidence = diagnose_oom(OomReport()).evidence
    assert json.loads(json.dumps(evidence)) == evidence
    assert (evidence["missing_bytes"], evidence["line"]) == (None, None)
