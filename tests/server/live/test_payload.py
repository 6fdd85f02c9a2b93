from __future__ import annotations

import json
import math

from tests.support.server_rows import make_rows
from vramscope_protocol.columns import UNKNOWN
from vramscope_server.live import payload
from vramscope_server.registry.lives import LifeOffset


def test_samples_hold_time_step_and_the_fields_that_exist() -> None:
    rows = make_rows(time_ns=[10, 20], step=[1, 2], a__b=[5, UNKNOWN], c=[0.5, math.nan])
    body = json.loads(payload.samples_payload(3, rows, ("a.b", "c", "absent", "step", "time_ns")))
    assert body == {
        "kind": "samples",
        "rank": 3,
        "time_ns": [10, 20],
        "columns": {"step": [1, 2], "a.b": [5, None], "c": [0.5, None]},
    }


def test_steps_hold_their_step_outside_the_columns() -> None:
    rows = make_rows("step", time_ns=[10], step=[7], a=[5])
    assert json.loads(payload.steps_payload(0, rows, ("a",), life=LifeOffset(2, 30))) == {
        "kind": "steps",
        "rank": 0,
        "life": 2,
        "step_offset": 30,
        "step": [7],
        "time_ns": [10],
        "columns": {"a": [5]},
    }


def test_the_other_kinds_name_themselves() -> None:
    assert json.loads(payload.runs_payload([{"id": "r"}])) == {
        "kind": "runs",
        "runs": [{"id": "r"}],
    }
    assert json.loads(payload.run_payload({"id": "r"})) == {"kind": "run", "run": {"id": "r"}}
    assert json.loads(payload.event_payload({"rank": 0})) == {"kind": "event", "event": {"rank": 0}}
    assert json.loads(payload.command_payload({"id": "c"})) == {
        "kind": "command",
        "command": {"id": "c"},
    }
    assert json.loads(payload.status_payload(1, {"rate_hz": 10.0})) == {
        "kind": "status",
        "rank": 1,
        "status": {"rate_hz": 10.0},
    }
    assert json.loads(payload.finding_payload({"id": "f"})) == {
        "kind": "finding",
        "finding": {"id": "f"},
    }
    assert json.loads(payload.snapshot_payload({"id": "s"})) == {
        "kind": "snapshot",
        "snapshot": {"id": "s"},
    }
