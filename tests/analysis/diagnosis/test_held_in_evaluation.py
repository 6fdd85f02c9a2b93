"""What an evaluation gathers is told with its holder and the remedy that fits, and is no leak."""

from __future__ import annotations

from dataclasses import replace

from tests.analysis.diagnosis.test_evaluation_ramp import evaluated
from tests.support.step_floors import BASE, MIB, held_by, report_of, steps_of
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.growth_reading import growth_reading
from vramscope_analysis.diagnosis.held_in_evaluation import in_evaluation
from vramscope_analysis.diagnosis.leak import leak
from vramscope_analysis.diagnosis.words import MAX_SENTENCE
from vramscope_analysis.evidence.growth_report import Frame, GrowthGroup
from vramscope_analysis.evidence.run_evidence import RankEvidence

STORED = Frame("/job/evaluate.py", 20, "validate")
OUTS = GrowthGroup(
    bytes=250 * MIB,
    count=40,
    holders=(held_by("local", "outs", "list of 40", "['x']", stored_at=STORED),),
)
STATE = GrowthGroup(
    count=9000, holders=(held_by("autograd_graph", "h", "graph of 9000 nodes", stored_at=STORED),)
)


def one(rank: RankEvidence) -> Finding:
    (finding,) = in_evaluation(rank, growth_reading(rank))
    assert len(finding.summary) <= MAX_SENTENCE
    assert leak(rank) == []
    return finding


def looked_into(*held: GrowthGroup) -> RankEvidence:
    return replace(evaluated(), within_step=report_of(steps=[150], live=[BASE], held=held))


def test_without_a_look_both_kinds_of_remedy_are_offered_and_nobody_is_blamed() -> None:
    finding = one(evaluated(named=True))
    assert finding.summary.startswith("Evaluation keeps ")
    assert (finding.severity, finding.subject, finding.culprits) == ("info", "eval", ())
    assert not any("grad" in remedy.action for remedy in finding.remedies)
    unnamed = one(evaluated())
    assert [remedy.fix for remedy in unnamed.remedies[:2]] == [
        "outputs.append(output.argmax(-1).cpu())",
        "h = h.detach()",
    ]
    assert "build up between two steps" in unnamed.summary


def test_who_holds_the_results_is_named_with_the_line() -> None:
    finding = one(looked_into(OUTS, STATE))
    assert finding.summary.endswith(" in outs until it ends; then it goes again.")
    assert [(c.line, c.held_by[0]) for c in finding.culprits] == [(20, "outs")]
    assert not any("grad" in remedy.fix for remedy in finding.remedies)


def test_where_nobody_holds_as_much_it_hangs_on_a_graph() -> None:
    finding = one(looked_into(replace(OUTS, bytes=MIB), STATE))
    assert "h keeps the graph of every batch" in finding.summary
    assert [remedy.fix for remedy in finding.remedies] == [
        "with torch.no_grad():",
        "h = h.detach()",
    ]


def test_of_a_graph_the_line_that_was_running_is_told() -> None:
    holder = replace(held_by("autograd_graph", "h"), frame=Frame("/job/evaluate.py", 28, "f"))
    assert one(looked_into(GrowthGroup(count=1, holders=(holder,)))).culprits[0].line == 28


def test_it_is_a_warning_where_the_evaluation_decides_what_fits() -> None:
    rank = evaluated(named=True)
    peaks = (BASE + 20 * MIB + 0 * steps_of(len(rank.steps))).astype(int)
    columns = {**rank.steps.columns, "step.peak_allocated_bytes": peaks}
    tight = replace(rank, steps=replace(rank.steps, columns=columns), total_bytes=1000 * MIB)
    assert one(tight).severity == "warning"
    assert one(replace(tight, total_bytes=8000 * MIB)).severity == "info"
