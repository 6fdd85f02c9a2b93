from __future__ import annotations

import json

import numpy as np

from tests.support.made_ooms import made_oom
from vramscope_analysis.evidence.columns import UNKNOWN, Rows
from vramscope_analysis.evidence.oom_plain import plain_report, plain_rows


def test_what_is_not_known_is_null() -> None:
    rows = Rows(np.array([1, 2]), {"a": np.array([5, UNKNOWN]), "b": np.array([np.nan, 0.5])}, None)
    assert plain_rows(rows) == {
        "time_ns": [1, 2],
        "number": None,
        "columns": {"a": [5, None], "b": [None, 0.5]},
    }


def test_a_report_is_plain_json() -> None:
    text = json.dumps(plain_report(made_oom()), allow_nan=False)
    assert json.loads(text)["request_bytes"] == 200 << 20
