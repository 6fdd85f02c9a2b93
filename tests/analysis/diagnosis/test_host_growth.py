"""Host memory that grows: suspected until its line is known; workers and recordings apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tests.support.made_ranks import GIB, MIB, Column, made_rank, rows_of
from vramscope_analysis.diagnosis.finding import Finding
from vramscope_analysis.diagnosis.host_growth import host_growth as of_run
from vramscope_analysis.evidence.columns import UNKNOWN
from vramscope_analysis.evidence.growth_report import GrowthReport
from vramscope_analysis.evidence.run_evidence import RankEvidence, RunEvidence

SECONDS = 100
SECOND_NS = 10**9
RISING = [2 * GIB + 20 * MIB * s for s in range(SECONDS)]


def host_growth(rank: RankEvidence, *, emulated: bool = False) -> list[Finding]:
    return of_run(RunEvidence("run", 0, ranks=(rank,), emulated=emulated))


def job(steps: Mapping[str, Column] | None = None, /, **samples: Column) -> RankEvidence:
    """One step and one reading a second."""
    columns: dict[str, Column] = {f"host.{name}": values for name, values in samples.items()}
    columns = {"allocated_bytes.all.current": GIB} | columns
    made = rows_of(SECONDS, columns, every_ns=SECOND_NS)
    rank = made_rank(1, columns={}, samples=made)
    return replace(rank, steps=rows_of(SECONDS, steps or {}, every_ns=SECOND_NS))


def test_growth_that_nobody_has_explained_is_a_suspicion() -> None:
    (finding,) = host_growth(job(anonymous_bytes=RISING))
    assert (finding.kind, finding.stage, finding.severity) == ("host_growth", "suspected", "info")
    assert (finding.subject, finding.culprits, finding.ranks) == ("", (), (0,))
    assert finding.summary.startswith("The process took 1.4 GiB more host memory: ")
    assert "MiB per step." in finding.summary
    assert finding.detail == "The memory of the device does not grow with it. "
    assert "leak" not in str(finding)


def test_a_job_that_has_let_go_of_all_at_its_end_did_grow_on_the_device() -> None:
    device = [GIB + 20 * MIB * s for s in range(SECONDS - 1)] + [0]
    rank = job(anonymous_bytes=RISING)
    samples = replace(
        rank.samples,
        columns={**rank.samples.columns, "allocated_bytes.all.current": np.array(device)},
    )
    (finding,) = host_growth(replace(rank, samples=samples))
    assert finding.detail == ""


def test_with_the_line_that_keeps_it_it_is_confirmed() -> None:
    holder = {"chain": ["Log.rows"], "frame": {"file": "train.py", "line": 12}}
    growth = GrowthReport(host_groups=({"bytes": GIB, "holders": [holder]},))
    (finding,) = host_growth(replace(job(anonymous_bytes=RISING), growth=growth))
    assert (finding.stage, finding.severity, finding.subject) == (
        "confirmed",
        "warning",
        "train.py:12",
    )
    assert finding.summary.endswith("MiB per step at train.py:12: tensors kept by Log.rows.")
    assert "waits for the device" in finding.remedies[0].cost


def test_tensors_that_take_nothing_themselves_keep_their_graph() -> None:
    holder = {"chain": ["Log.rows"], "frame": {"file": "train.py", "line": 12}}
    growth = GrowthReport(host_groups=({"bytes": 32, "holders": [holder]},))
    (finding,) = host_growth(replace(job(anonymous_bytes=RISING), growth=growth))
    assert finding.remedies[0].fix == "value.detach()"
    assert finding.remedies[0].predicted_bytes == finding.evidence["grown_bytes"]


def test_a_graph_that_grows_is_said_to_be_one() -> None:
    holder = {"chain": ["total", "grad_fn"], "frame": {"file": "train.py", "line": 30}}
    growth = GrowthReport(host_groups=({"type": "autograd graph", "holders": [holder]},))
    (finding,) = host_growth(replace(job(anonymous_bytes=RISING), growth=growth))
    assert finding.summary.endswith("at train.py:30: graph history kept by total.")
    assert finding.remedies[0].fix == "value.detach()"


def test_the_end_of_the_hosts_memory_makes_it_urgent() -> None:
    rank = job(anonymous_bytes=RISING, limit_bytes=64 * GIB, limit_used_bytes=60 * GIB)
    (finding,) = host_growth(rank)
    assert finding.severity == "warning"
    assert "4.0 GiB of host memory are left" in finding.detail


def test_growth_of_the_device_is_not_ruled_out_where_it_grows_as_well() -> None:
    rank = job(anonymous_bytes=RISING)
    columns: dict[str, Column] = {
        **rank.samples.columns,
        "allocated_bytes.all.current": RISING,
    }
    rank = replace(rank, samples=rows_of(SECONDS, columns, every_ns=SECOND_NS))
    assert "device" not in host_growth(rank)[0].detail


def test_files_and_shared_pages_do_not_count() -> None:
    assert host_growth(job(rss_bytes=RISING, anonymous_bytes=2 * GIB)) == []
    assert host_growth(job(rss_bytes=RISING)) == []
    assert host_growth(job(anonymous_bytes=UNKNOWN)) == []


def test_pinned_memory_has_a_finding_of_its_own() -> None:
    assert host_growth(job(anonymous_bytes=RISING, pinned_reserved_bytes=RISING)) == []


def test_a_recording_of_the_job_is_named_and_ours_is_no_cause() -> None:
    recorded = job({"step.recording": 2}, anonymous_bytes=RISING)
    (finding,) = host_growth(recorded)
    assert (finding.subject, finding.severity) == ("memory history", "warning")
    assert "max_entries" in finding.remedies[0].fix
    ours = job({"step.recording": 1}, anonymous_bytes=RISING)
    assert [finding.subject for finding in host_growth(ours)] == [""]


WORKERS: dict[str, Column] = {
    "anonymous_bytes": 2 * GIB,
    "workers": 2,
    "workers_rss_bytes": 4 * GIB,
    "workers_pss_bytes": [GIB + 20 * MIB * s for s in range(SECONDS)],
}


def test_copies_in_workers_are_told_from_what_they_keep() -> None:
    (finding,) = host_growth(job(**WORKERS))
    assert finding.summary == (
        "2 DataLoader workers took 1.4 GiB more host memory: copies of pages they share."
    )
    assert (finding.subject, finding.severity) == ("workers", "info")
    assert "It ends at 4.0 GiB at most. The device has no part in it." in finding.detail
    assert finding.remedies[0].action.startswith("keep the data set in arrays")
    assert finding.remedies[1].action == "use fewer workers than 2"
    for word in ("GPU", "CUDA", "batch size", "leak"):
        assert word not in str(finding)
    (own,) = host_growth(job(**{**WORKERS, "workers_rss_bytes": RISING}))
    assert own.summary.endswith("what they keep for themselves.")
    assert own.evidence["at_most_bytes"] is None


def test_the_end_of_copies_is_what_the_process_had_before_it_let_go() -> None:
    own = [2 * GIB] * (SECONDS - 1) + [GIB // 2]
    (finding,) = host_growth(job(**{**WORKERS, "anonymous_bytes": own}))
    assert "It ends at 4.0 GiB at most." in finding.detail


def test_copies_become_fewer_and_are_told_all_the_same() -> None:
    slowing = [int(GIB * (2 - math.exp(-second / 20))) for second in range(SECONDS)]
    (finding,) = host_growth(job(**{**WORKERS, "workers_pss_bytes": slowing}))
    assert finding.summary.endswith("more host memory: copies of pages they share.")
    # A process that grows so fills up with something.
    assert host_growth(job(anonymous_bytes=slowing)) == []


def test_workers_that_come_and_go_say_nothing() -> None:
    changing = [2] * 50 + [4] * 50
    assert host_growth(job(**{**WORKERS, "workers": changing})) == []
    assert host_growth(job(**{**WORKERS, "workers": UNKNOWN})) == []
    flat: dict[str, Column] = {**WORKERS, "workers_pss_bytes": GIB}
    assert host_growth(job(**flat)) == []


def test_tensors_of_an_emulated_device_are_no_growth_of_the_host() -> None:
    rank = job(anonymous_bytes=RISING)
    columns: dict[str, Column] = {
        **rank.samples.columns,
        "allocated_bytes.all.current": [size - GIB for size in RISING],
    }
    rank = replace(rank, samples=rows_of(SECONDS, columns, every_ns=SECOND_NS))
    assert host_growth(rank, emulated=True) == []
    assert len(host_growth(rank)) == 1
    assert len(host_growth(job(anonymous_bytes=RISING), emulated=True)) == 1
