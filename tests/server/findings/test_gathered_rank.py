"""What one process has told, as judges read it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.made_segments import segment
from tests.support.recorded_map import MapOfLooks
from tests.support.server_rows import make_rows
from vramscope_analysis.evidence.growth_report import GrowthGroup, GrowthReport, WaitingGroup
from vramscope_analysis.evidence.oom_report import OomReport
from vramscope_analysis.evidence.run_evidence import RankEvidence, Stretch
from vramscope_protocol.messages import DeviceInfo, RankInfo
from vramscope_server.findings import gathered_rank
from vramscope_server.findings.gathered_rank import CLOCKS_NS, GatheredRank, event_bytes
from vramscope_server.maps.current_map import CurrentMap, MapParts

INFO = RankInfo(
    3,
    "node",
    42,
    devices=[DeviceInfo(0, "H200", uuid="GPU-7", total_bytes=100, limit_bytes=80)],
    software={"torch": "2.11.0"},
    process_started_ns=1000,
)


def event(kind: str, time_ns: int = 1, step: int | None = 5, **data: Any) -> dict[str, Any]:
    return {"time_ns": time_ns, "kind": kind, "step": step, "text": "", "data": data}


def take(rank: GatheredRank, *events: dict[str, Any]) -> None:
    for each in events:
        rank.take_event(each, event_bytes(each))


def read(rank: GatheredRank) -> RankEvidence:
    return rank.evidence(3, 64)()


def test_who_it_is_and_what_it_has() -> None:
    evidence = read(GatheredRank(INFO))
    assert (evidence.rank, evidence.host) == (3, "node")
    assert (evidence.total_bytes, evidence.limit_bytes) == (100, 80)
    assert evidence.device_uuid == "GPU-7"
    assert evidence.torch_version == "2.11.0"
    assert (evidence.settings, evidence.growth) == (None, None)
    assert (len(evidence.steps), len(evidence.samples)) == (0, 0)


def test_rows_and_what_follows_from_them() -> None:
    rank = GatheredRank(RankInfo(3, "node", 42))
    rank.take_steps(make_rows("step", time_ns=[1, 2], step=[1, 2], a=[5, 6]))
    rank.take_samples(
        make_rows(
            time_ns=[1, 2],
            step=[1, 1],
            device__total_bytes=[90, 90],
        )
    )
    evidence = read(rank)
    assert evidence.steps.numbers("a").tolist() == [5, 6]
    assert evidence.total_bytes == 90


def test_phases_are_stretches_and_the_rest_are_events() -> None:
    rank = GatheredRank(INFO)
    take(rank, event("phase", id=1, phase="eval", start_ns=10, end_ns=None, peak_bytes=None))
    take(rank, event("phase", id=2, phase="backward", start_ns=11), event("mark", note="here"))
    take(rank, event("phase", id=1, phase="eval", start_ns=10, end_ns=20, peak_bytes=9))
    take(rank, event("phase", id="x", phase="eval", start_ns=1), event("phase", phase=5))
    evidence = read(rank)
    assert evidence.stretches == (Stretch("eval", 10, 20, 5, 9),)
    assert [(each.kind, each.data) for each in evidence.events] == [("mark", {"note": "here"})]


def test_settings_are_those_that_were_told_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered_rank, "MAX_EVENTS", 1)
    rank = GatheredRank(INFO)
    take(rank, event("settings", text="a:1"), event("settings", text="b:2"), event("mark"))
    assert read(rank).settings == "b:2"
    take(rank, event("settings", text=7))
    assert read(rank).settings == "b:2"


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_EVENTS", "MAX_STRETCHES", "MAX_OOMS"):
        monkeypatch.setattr(gathered_rank, name, 2)
    rank = GatheredRank(INFO)
    for number in range(1, 6):
        take(rank, event("mark", number), event("phase", id=number, phase="eval", start_ns=number))
        rank.take_oom(OomReport(f"oom-{number}", number))
    evidence = read(rank)
    assert [each.time_ns for each in evidence.events] == [4, 5]
    assert [each.start_ns for each in evidence.stretches] == [4, 5]
    assert [each.id for each in evidence.ooms] == ["oom-4", "oom-5"]
    monkeypatch.setattr(gathered_rank, "MAX_EVENT_BYTES", 50)
    take(rank, event("mark", 6, text="x" * 100))
    assert read(rank).events == ()
    assert rank.held_bytes == 0


def test_large_reports_push_out_older_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered_rank, "MAX_OOM_BYTES", 1000)
    rank = GatheredRank(INFO)
    for number, size_bytes in enumerate((400, 400, 400, 5000)):
        rank.take_oom(OomReport(f"oom-{number}", number), size_bytes)
        if number == 2:
            assert [each.id for each in read(rank).ooms] == ["oom-1", "oom-2"]
    assert [each.id for each in read(rank).ooms] == ["oom-3"]
    assert rank.held_bytes >= 5000


def test_the_newest_answer_that_tells_something_counts() -> None:
    rank = GatheredRank(INFO)
    empty = GrowthReport(1)
    assert rank.take_growth(empty)
    telling = GrowthReport(5, notes=("It did not grow.",))
    assert rank.take_growth(telling)
    assert not rank.take_growth(GrowthReport(9))
    assert not rank.take_growth(GrowthReport(4, notes=("Older.",)))
    assert read(rank).growth is telling
    assert rank.take_growth(GrowthReport(10, held=(GrowthGroup(bytes=5),)))


def test_lines_stand_beside_the_last_answer_until_the_next_one() -> None:
    rank = GatheredRank(INFO)
    before = GrowthReport(1, notes=("It did not grow.",))
    rank.take_growth(before)
    lines = GrowthReport(5, (5,), groups=(GrowthGroup(bytes=5),), holders_follow=True)
    assert rank.take_growth(lines)
    assert (read(rank).growth, read(rank).growth_so_far) == (before, lines)
    whole = GrowthReport(6, (5,), groups=(GrowthGroup(bytes=6),))
    assert rank.take_growth(whole)
    assert (read(rank).growth, read(rank).growth_so_far) == (whole, None)


def test_what_waits_for_another_stream_stays_known_beside_what_grows() -> None:
    rank = GatheredRank(INFO)
    rank.take_growth(GrowthReport(1, (5,), groups=(GrowthGroup(bytes=5),)))
    assert rank.take_growth(GrowthReport(2, (9,), waiting=(WaitingGroup(bytes=7),)))
    found = GrowthReport(2, (5,), groups=(GrowthGroup(bytes=5),), waiting=(WaitingGroup(bytes=7),))
    assert read(rank).growth == found
    # A look at which nothing waits does not make it unknown.
    assert rank.take_growth(GrowthReport(3, (20,), notes=("It did not grow.",)))
    assert read(rank).growth == GrowthReport(
        3, (20,), notes=("It did not grow.",), waiting=found.waiting
    )
    assert not rank.take_growth(GrowthReport(4, (30,)))


def test_what_grows_on_the_host_is_told_beside_what_grows_on_the_device() -> None:
    rank = GatheredRank(INFO)
    host = GrowthReport(5, (1, 2), host_groups=({"type": "graph", "count": 3},))
    assert rank.take_growth(host, is_of_host=True)
    assert read(rank).growth == GrowthReport(5, host_groups=host.host_groups)
    device = GrowthReport(4, (7, 8), notes=("It did not grow.",))
    assert rank.take_growth(device)
    assert read(rank).growth == GrowthReport(
        4, (7, 8), host_groups=host.host_groups, notes=device.notes
    )


def test_ooms_of_a_life_before_are_known_in_the_next() -> None:
    before = GatheredRank(INFO)
    before.take_oom(OomReport("oom-1", 9))
    after = GatheredRank(INFO, before)
    after.take_oom(OomReport("oom-2", 3))
    assert [each.id for each in read(after).ooms] == ["oom-2", "oom-1"]


def test_events_of_the_store_come_before_those_that_were_heard() -> None:
    rank = GatheredRank(INFO)
    take(rank, event("mark", 5), event("phase", id=2, phase="eval", start_ns=7, end_ns=9))
    stored = [
        event("mark", 3),
        event("mark", 5),
        event("phase", id=1, phase="eval", start_ns=1),
        event("phase", id=2, phase="eval", start_ns=7),
    ]
    rank.put_events_before(stored)
    evidence = read(rank)
    assert [each.time_ns for each in evidence.events] == [3, 5]
    assert [(each.start_ns, each.end_ns) for each in evidence.stretches] == [(1, None), (7, 9)]


def test_processes_are_those_of_the_newest_status() -> None:
    rank = GatheredRank(INFO)
    rank.take_status({"processes": [{"pid": 1}], "outside": [{"name": "NCCL", "bytes": 4}]})
    rank.take_status({"processes": [{"pid": 2}], "outside": []})
    evidence = read(rank)
    assert (evidence.processes, evidence.outside) == (({"pid": 2, "own": False},), ())


def test_the_process_itself_is_none_of_the_others_on_its_device() -> None:
    rank = GatheredRank(INFO)
    rank.take_status({"processes": [{"pid": INFO.pid}, {"pid": INFO.pid + 1}], "outside": []})
    assert [each["own"] for each in read(rank).processes] == [True, False]


def test_a_map_is_read_once_and_only_if_it_is_of_this_life() -> None:
    kept = CurrentMap()
    source = MapOfLooks()
    source.look([segment(1 << 40, "a1 f7")], 5, 2 * CLOCKS_NS)
    frame = source.feed.next_frame(1 << 20)
    assert frame is not None
    kept.take(frame)
    rank = GatheredRank(INFO)
    first, second = (rank.evidence(3, 64, kept.parts())().layout for _ in range(2))
    assert first is not None
    assert first is second
    assert (first.step, first.free_bytes) == (5, 7 << 20)
    kept.take(source.frame([segment(1 << 40, "a1 f9")], 6))
    newer = rank.evidence(3, 64, kept.parts())().layout
    assert newer is not None
    assert newer.free_bytes == 9 << 20
    assert rank.evidence(3, 64)().layout is None
    later = RankInfo(3, "node", 42, process_started_ns=kept.parts().head["time_ns"] + 2 * CLOCKS_NS)
    assert GatheredRank(later).evidence(3, 64, kept.parts())().layout is None


def test_a_map_that_says_why_there_is_none_is_no_layout() -> None:
    parts = MapParts({"why_not": "another backend", "time_ns": 2 * CLOCKS_NS}, [], [])
    assert GatheredRank(INFO).evidence(3, 64, parts)().layout is None
