"""One policy in one run: which ranks it holds on, and when that is enough."""

from __future__ import annotations

from typing import Any

from tests.support.made_policies import GIB, WHEN, definition, finding_record
from tests.support.server_rows import make_rows
from vramscope_protocol.messages import BatchKind
from vramscope_server.policies.series_values import series_values
from vramscope_server.policies.watch import Watch

S = 10**9


def take(
    watch: Watch, rank: int, values: list[int], start_s: int = 100, *, kind: BatchKind = "sample"
) -> None:
    """One value a second and a step, in GiB."""
    count = range(len(values))
    rows = make_rows(
        kind,
        time_ns=[(start_s + i) * S for i in count],
        step=[start_s + i for i in count],
        reserved_bytes__all__current=[value * GIB for value in values],
    )
    assert watch.series is not None
    batch = series_values(rows, watch.series)
    assert batch is not None
    watch.take(rank, batch)


def test_on_any_rank() -> None:
    watch = Watch(definition(hold={"seconds": 2}))
    take(watch, 0, [1, 1, 1])
    take(watch, 1, [7, 8, 9])
    met = watch.met({0, 1})
    assert met is not None
    assert (met.ranks, met.held_s, met.value) == ((1,), 2, 9 * GIB)
    assert watch.met({0}) is None  # what rank 1 says is not of now


def test_on_all_ranks() -> None:
    watch = Watch(definition(when=WHEN | {"ranks": "all"}, hold={"seconds": 2}))
    take(watch, 0, [7, 7, 7])
    take(watch, 1, [1, 8, 9])
    assert watch.met({0, 1}) is None
    take(watch, 1, [9], 103)
    take(watch, 0, [9], 103)
    met = watch.met({0, 1})
    assert met is not None
    assert (met.ranks, met.held_s) == ((0, 1), 2)
    assert watch.met({0, 1, 2}) is None  # nothing is known of rank 2


def test_steps_are_told_by_rows_of_steps_once_there_are_some() -> None:
    watch = Watch(definition(hold={"steps": 3}))
    take(watch, 0, [7, 7, 7], kind="step")
    take(watch, 0, [1], 103)
    assert watch.met({0}) is not None


def test_seconds_are_told_by_samples_once_there_are_some() -> None:
    watch = Watch(definition(hold={"seconds": 1}))
    take(watch, 0, [7, 7, 7], kind="step")
    assert watch.met({0}) is not None  # there is nothing else
    take(watch, 0, [1], 103)
    take(watch, 0, [7, 7], 104, kind="step")
    assert watch.met({0}) is None


def findings(watch: Watch, *records: Any, now_s: int = 10, step: int = 0) -> Any:
    watch.take_findings(records, now_s * S, step)
    return watch.met({0})


def test_a_finding_of_a_kind() -> None:
    watch = Watch(definition(when={"finding": "leak"}))
    assert findings(watch, finding_record("fragmentation")) is None
    met = findings(watch, finding_record("fragmentation"), finding_record("leak", ranks=(1, 3)))
    assert met is not None
    assert (met.ranks, met.what) == ((1, 3), "It is so.")
    assert findings(watch) is None


def test_severity_stage_and_mutes() -> None:
    watch = Watch(definition(when={"finding": None, "severity": "warning"}))
    assert findings(watch, finding_record(severity="info")) is None
    assert findings(watch, finding_record(severity="critical")) is not None
    assert findings(watch, finding_record(stage="suspected")) is None
    muted = finding_record()
    muted.muted = {"until": "run", "until_ns": None}
    assert findings(watch, muted) is None
    suspected = Watch(definition(when={"finding": None, "confirmed": False}))
    assert findings(suspected, finding_record(stage="suspected")) is not None


def test_a_finding_has_to_hold_for_long_enough() -> None:
    watch = Watch(definition(when={"finding": None}, hold={"seconds": 5}))
    assert findings(watch, finding_record(), now_s=10) is None
    assert findings(watch, finding_record(), now_s=15) is not None
    in_steps = Watch(definition(when={"finding": None}, hold={"steps": 5}))
    assert findings(in_steps, finding_record(), step=3) is None
    assert findings(in_steps, finding_record(), step=8) is not None


def test_a_finding_of_the_run_as_a_whole_names_no_rank() -> None:
    watch = Watch(definition(when={"finding": None}))
    met = findings(watch, finding_record(ranks=(1,)), finding_record("other_process", ranks=()))
    assert met.ranks == ()


def test_how_things_are() -> None:
    watch = Watch(definition())
    assert watch.state(set())["note"] == "no rank has sent this series"
    take(watch, 0, [1])
    take(watch, 2, [7, 8])
    assert watch.state({0, 2}) == {
        "holds": True,
        "ranks": [2],
        "held_s": 1,
        "held_steps": 1,
        "value": 8 * GIB,
        "note": "",
    }
    assert watch.state(set())["note"] == "no rank sends anything that is of now"
    found = Watch(definition(when={"finding": None}))
    found.take_findings([finding_record()], S, 0)
    assert (found.state({0})["holds"], found.state({0})["ranks"]) == (True, [0])
