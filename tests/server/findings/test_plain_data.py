"""Whatever a judge says can be stored and sent."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from vramscope_analysis.diagnosis.finding import Culprit, Finding
from vramscope_server.findings import plain_data
from vramscope_server.findings.plain_data import plain_finding, plain_text, plain_value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (3, 3),
        (True, True),
        ("text", "text"),
        (math.inf, None),
        (math.nan, None),
        (1 << 70, None),
        (np.float64(0.5), 0.5),
        (np.int64(7), 7),
        (np.float32(math.nan), None),
        ((1, "a", None), [1, "a", None]),
        ({1: {"a": object()}}, {"1": {"a": None}}),
        ({"a\0": "b\0"}, {"a": "b"}),
        ("\ud800", "?"),
    ],
)
def test_values(value: Any, plain: Any) -> None:
    found = plain_value(value)
    assert found == plain
    json.dumps(found, allow_nan=False)


def test_what_is_deep_or_long_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    assert json.dumps(plain_value(deep)).count("[") == 6
    monkeypatch.setattr(plain_data, "MAX_ITEMS", 10)
    assert len(plain_value(list(range(1000)))) < 10
    assert plain_text("x" * 10_000) == "x" * 2000


def test_a_finding_keeps_as_many_culprits_as_a_page_shows() -> None:
    finding = Finding("leak", "info", "It grows.", culprits=(Culprit("a.py", 1),) * 100)
    assert len(plain_finding(finding)["culprits"]) == plain_data.MAX_CULPRITS
