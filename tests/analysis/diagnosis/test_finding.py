"""A finding says no more than it was given."""

from __future__ import annotations

from vramscope_analysis.diagnosis.finding import Finding, Remedy


def test_what_is_not_given_is_empty_and_not_made_up() -> None:
    finding = Finding("leak", "warning", "It grows.")
    assert (finding.evidence, finding.culprits, finding.remedies) == ({}, (), ())
    assert finding.confidence == 1.0
    assert Remedy("free it", "it is not used").predicted_bytes is None
