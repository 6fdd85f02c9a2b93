"""The rule says when, and says nothing where nothing is known."""

from __future__ import annotations

import pytest

from vramscope.history.rule import HistoryRule, parse_rule
from vramscope_protocol.columns import UNKNOWN


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("above 90%", HistoryRule(90, 20)),
        (" Above 85 % for 50 steps ", HistoryRule(85, 50)),
        ("above 5% for 1 step", HistoryRule(5, 1)),
        ("off", None),
    ],
)
def test_a_rule_is_read(text: str, rule: HistoryRule | None) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize("text", ["", "90%", "above 0%", "above 100%", "above 90% for 0 steps"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected off, or a rule such as"):
        parse_rule(text)


def test_what_is_written_can_be_read() -> None:
    assert parse_rule(HistoryRule(90, 5).text) == HistoryRule(90, 5)


@pytest.mark.parametrize(
    ("reserved", "used", "total", "limit", "passed"),
    [
        (901, 0, 1000, None, "reserved memory is above 90% of the limit"),
        (900, 0, 1000, None, None),
        (451, 0, 1000, 500, "reserved memory is above 90% of the limit"),
        (451, 0, 1000, None, None),
        (10, 901, 1000, None, "the device is more than 90% full"),
        (10, UNKNOWN, 1000, None, None),
        (10, 901, UNKNOWN, None, None),
        (901, UNKNOWN, UNKNOWN, 1000, "reserved memory is above 90% of the limit"),
    ],
)
def test_it_is_passed_by_what_is_known(
    reserved: int, used: int, total: int, limit: int | None, passed: str | None
) -> None:
    assert HistoryRule(90).passed(reserved, used, total, limit) == passed
