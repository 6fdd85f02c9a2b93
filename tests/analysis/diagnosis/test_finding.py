"""How severe a finding may be, and in which order."""

from __future__ import annotations

from typing import get_args

from vramscope_analysis.diagnosis.finding import SEVERITIES, Severity


def test_every_severity_has_its_place_in_the_order() -> None:
    assert set(SEVERITIES) == set(get_args(Severity))
    assert SEVERITIES.index("info") < SEVERITIES.index("warning") < SEVERITIES.index("critical")
