"""When an agent's picture is less than what was asked for, and when it is whole again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vramscope_analysis.diagnosis.agent_degraded import AgentReading, agent_degraded


def reading(time_s: float, rate_hz: float = 10.0, **values: Any) -> AgentReading:
    return replace(AgentReading(time_s, time_s, rate_hz, 10.0, 0.004, 0.005), **values)


def history(*stretches: tuple[int, float]) -> list[AgentReading]:
    """One reading a second: so many seconds at this rate, then at that."""
    rates = [rate_hz for seconds, rate_hz in stretches for _ in range(seconds)]
    return [reading(float(number), rate_hz) for number, rate_hz in enumerate(rates)]


def test_nothing_is_said_without_a_word_of_the_agent_or_when_all_is_well() -> None:
    assert agent_degraded([]) is None
    assert agent_degraded(history((600, 10.0))) is None


def test_a_rate_that_stays_low_is_told_with_its_budget() -> None:
    finding = agent_degraded(history((60, 10.0), (11, 4.0)))
    assert finding is not None
    assert (finding.kind, finding.severity) == ("agent_degraded", "info")
    assert finding.summary == "Sampling at 4.0 instead of 10 Hz to stay within 0.5 % of a core."
    assert finding.evidence["rate_hz"] == 4.0
    assert [remedy.action for remedy in finding.remedies] == ["raise cost_budget"]


def test_a_few_low_seconds_are_no_finding() -> None:
    assert agent_degraded(history((60, 10.0), (9, 1.0))) is None
    assert agent_degraded(history((60, 10.0), (9, 1.0), (10, 10.0))) is None


def test_a_rate_a_little_below_is_no_finding() -> None:
    assert agent_degraded(history((100, 6.8))) is None


def test_it_is_over_when_the_rate_has_been_whole_for_a_while() -> None:
    finding = agent_degraded(history((60, 4.0), (15, 10.0)))
    assert finding is not None
    assert finding.evidence["rate_hz"] == 4.0
    assert agent_degraded(history((60, 4.0), (25, 10.0))) is None


def test_a_silence_is_not_counted_as_a_low_rate() -> None:
    readings = [reading(0.0, 4.0), reading(29.0, 10.0)]
    assert agent_degraded(readings) is None


def test_without_a_budget_none_is_named() -> None:
    readings = [replace(each, budget_fraction=0.0) for each in history((30, 2.0))]
    finding = agent_degraded(readings)
    assert finding is not None
    assert finding.summary == "Sampling at 2.0 instead of 10 Hz."


def test_losses_of_the_last_minutes_are_a_warning_and_pass() -> None:
    readings = [reading(float(second)) for second in range(100)]
    readings += [reading(float(second), lost={"spool_full": 7}) for second in range(100, 350)]
    finding = agent_degraded(readings)
    assert finding is not None
    assert finding.severity == "warning"
    assert finding.summary == "7 rows and messages dropped."
    assert finding.evidence == {"lost": {"spool_full": 7}}
    readings += [reading(float(second), lost={"spool_full": 7}) for second in range(350, 402)]
    assert agent_degraded(readings) is None


def test_errors_are_told_by_place() -> None:
    readings = [reading(1.0), reading(2.0, errors={"sample": 2, "step hooks": 1})]
    finding = agent_degraded(readings)
    assert finding is not None
    assert finding.summary == "3 errors of the agent in: sample, step hooks."
    assert finding.severity == "warning"


def test_old_totals_of_an_agent_that_is_heard_for_the_first_time_are_old() -> None:
    readings = [reading(5.0, attached_s=4000.0, errors={"sample": 1})]
    assert agent_degraded(readings) is None
    readings.append(reading(6.0, attached_s=4001.0, errors={"sample": 2}))
    finding = agent_degraded(readings)
    assert finding is not None
    assert finding.evidence["errors"] == {"sample": 1}


def test_totals_of_an_agent_that_has_just_been_attached_are_new() -> None:
    finding = agent_degraded([reading(5.0, attached_s=3.0, lost={"row_buffer_full": 1})])
    assert finding is not None
    assert finding.summary == "1 row or message dropped."


def test_all_at_once_is_one_finding() -> None:
    readings = history((30, 2.0))
    readings.append(reading(30.0, 2.0, errors={"flush": 1}, lost={"outbox_full": 2}))
    finding = agent_degraded(readings)
    assert finding is not None
    assert finding.severity == "warning"
    assert set(finding.evidence) >= {"rate_hz", "errors", "lost"}
    assert finding.summary.count(";") == 2
