from __future__ import annotations

import pytest

from tests.support.fake_streams import stream_record
from tests.support.streams import made_columns, made_rows
from vramscope_protocol.account import AgentAccount, ProcessMemory
from vramscope_protocol.messages import AgentStatus, Goodbye, Lost, RunInfo
from vramscope_server.registry.registry import Registry
from vramscope_server.store.claims import Seat
from vramscope_server.store.runs import RunRecord, StreamRecord

SECOND_NS = 10**9
RUN = RunInfo("run-a", "training", world_size=2)


class Bench:
    def __init__(self, max_runs: int = 100) -> None:
        self.now_ns = 1_000_000 * SECOND_NS
        self.alive = {4321}
        self.registry = Registry(
            lambda: self.now_ns, 300.0, "host-a", lambda pid: pid in self.alive, max_runs
        )

    def register(self, stream: StreamRecord, run: RunInfo = RUN, started_ns: int = 5) -> None:
        self.registry.registered(run, started_ns, stream)
        self.registry.connected(stream.uid)

    def states(self, run_id: str = "run-a") -> tuple[str, list[str]]:
        run = self.registry.run(run_id)
        assert run is not None
        return run["state"], [rank["state"] for rank in run["ranks"]]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_live_ended_lost(bench: Bench) -> None:
    bench.register(stream_record("a", 1, rank=0))
    bench.register(stream_record("b", 2, rank=1))
    assert bench.states() == ("live", ["live", "live"])
    bench.registry.take_goodbye("a", Goodbye(1, 77, "exit", 0))
    assert bench.states() == ("live", ["ended", "live"])
    bench.registry.disconnected("b")
    bench.now_ns += 299 * SECOND_NS
    assert bench.states() == ("live", ["ended", "live"])
    bench.now_ns += 2 * SECOND_NS
    assert bench.states() == ("lost", ["ended", "lost"])
    bench.registry.connected("b")  # back after all
    assert bench.states() == ("live", ["ended", "live"])
    bench.registry.take_goodbye("b", Goodbye(1, 99, "exception", 1, "boom"))
    run = bench.registry.run("run-a")
    assert run is not None
    assert (run["state"], run["ended_ns"]) == ("ended", 99)
    assert run["ranks"][1]["end_text"] == "boom"


def test_who_sits_on_a_rank_is_connected_heard_and_has_not_gone(bench: Bench) -> None:
    record = stream_record("a", 1, rank=1)
    record.secret = "hash"
    bench.registry.registered(RUN, 5, record)
    assert bench.registry.seat("run-a", 1) is None
    bench.registry.connected("a")
    seat = Seat("a", "hash", "process 4321 on host-b")
    assert bench.registry.seat("run-a", 1) == seat
    assert bench.registry.seat("run-a", 0) is bench.registry.seat("run-b", 1) is None
    bench.now_ns += 10 * SECOND_NS  # its node is gone, and nobody has closed the connection
    assert bench.registry.seat("run-a", 1) is None
    bench.registry.take_message("a", 1)
    assert bench.registry.seat("run-a", 1) == seat
    bench.registry.take_goodbye("a", Goodbye(2, 7, "detach"))
    assert bench.registry.seat("run-a", 1) is None


def test_a_process_of_this_host_that_is_gone_is_lost_at_once(bench: Bench) -> None:
    bench.register(stream_record("a", 1, host="host-a"))
    bench.alive.clear()
    assert bench.states() == ("live", ["live"])  # it is connected: that counts more
    bench.registry.disconnected("a")
    assert bench.states() == ("lost", ["lost"])


def test_a_process_of_this_host_that_dies_later_is_noticed_by_the_tick(bench: Bench) -> None:
    bench.register(stream_record("a", 1, host="host-a"))
    bench.registry.disconnected("a")
    assert bench.registry.tick() == {"run-a"}  # told for the first time
    assert bench.registry.tick() == set()
    bench.alive.clear()
    assert bench.registry.tick() == {"run-a"}
    assert bench.states() == ("lost", ["lost"])


def test_a_process_of_another_host_is_waited_for(bench: Bench) -> None:
    bench.alive.clear()
    bench.register(stream_record("a", 1, host="host-b"))
    bench.registry.disconnected("a")
    assert bench.states() == ("live", ["live"])


def test_time_alone_changes_a_state_and_the_tick_tells(bench: Bench) -> None:
    bench.register(stream_record("a", 1))
    bench.registry.disconnected("a")
    bench.registry.tick()
    bench.now_ns += 301 * SECOND_NS
    assert bench.registry.tick() == {"run-a"}


def test_a_clock_that_is_set_back_keeps_no_silent_rank_live(bench: Bench) -> None:
    bench.register(stream_record("a", 1, rank=0))
    bench.registry.disconnected("a")
    bench.now_ns -= 100_000 * SECOND_NS
    bench.registry.tick()
    assert bench.states() == ("live", ["live"])
    bench.now_ns += 301 * SECOND_NS
    assert bench.states() == ("lost", ["lost"])


def test_processes_of_runs_that_are_over_are_not_looked_for(bench: Bench) -> None:
    looked: list[int] = []

    def is_alive(pid: int) -> bool:
        looked.append(pid)
        return False

    registry = Registry(lambda: bench.now_ns, 300.0, "host-a", is_alive)
    streams = [stream_record(f"s{rank}", rank + 1, rank, host="host-a") for rank in range(2)]
    for stream in streams:
        stream.last_seen_ns = bench.now_ns
    registry.load([RunRecord(RUN, 5, streams)])
    assert registry.tick() == {"run-a"}
    assert len(looked) == 2
    looked.clear()
    assert registry.tick() == set()
    assert looked == []


def test_a_server_that_starts_again_goes_by_when_data_came_last(bench: Bench) -> None:
    recent = stream_record("a", 1, last_seen_ns=bench.now_ns - 100 * SECOND_NS)
    old = stream_record("b", 2, run_id="run-b", last_seen_ns=bench.now_ns - 400 * SECOND_NS)
    ended = stream_record("c", 3, run_id="run-c", ended_ns=9)
    bench.registry.load(
        RunRecord(RunInfo(stream.run_id, "n"), 1, [stream]) for stream in (recent, old, ended)
    )
    assert [bench.states(run)[0] for run in ("run-a", "run-b", "run-c")] == [
        "live", "lost", "ended",
    ]  # fmt: skip
    bench.now_ns += 201 * SECOND_NS
    assert bench.states()[0] == "lost"


def test_runs_newest_first_and_found_by_id_or_newest_name(bench: Bench) -> None:
    for number, started_ns in enumerate((5, 9, 7)):
        run = RunInfo(f"run-{number}", "same name")
        record = stream_record(f"s{number}", number, run_id=run.id)
        bench.register(record, run, started_ns)
    assert [run["id"] for run in bench.registry.runs()] == ["run-1", "run-2", "run-0"]
    assert bench.registry.find("run-0") == "run-0"
    assert bench.registry.find("same name") == "run-1"
    assert bench.registry.find("other") is None
    assert bench.registry.run("other") is None


def test_what_a_run_says_of_its_ranks(bench: Bench) -> None:
    bench.register(stream_record("a", 1, rank=0))
    bench.register(stream_record("b", 2, rank=1))
    columns = made_columns(30, unknown_share=0.0)
    assert bench.registry.take_rows("a", 1, made_rows(columns))
    assert not bench.registry.take_rows("a", 1, made_rows(columns))
    bench.registry.take_lost("b", Lost(samples={"full": 5}))
    status = bench.registry.take_status("b", AgentStatus(10.0, 0.001, notes=["NVML not found"]))
    run = bench.registry.run("run-a")
    assert run is not None
    assert run["step"] == 9
    assert run["used_bytes"] == columns["device.used_bytes"][-1]
    assert run["peak_reserved_bytes"] == columns["reserved_bytes.all.current"].max()
    assert run["ranks_connected"] == 2
    assert run["fullest_rank"] == 0
    assert run["exit_code"] is None
    assert (run["device_name"], run["world_size"]) == ("H200", 2)
    assert run["ranks"][1]["samples_lost"] == 5
    assert run["ranks"][1]["status"] == status
    assert status["notes"] == ["NVML not found"]
    assert bench.registry.connected_ranks("run-a") == bench.registry.all_ranks("run-a") == [0, 1]
    info = bench.registry.rank_info("run-a", 1)
    assert info is not None
    assert info.rank == 1
    assert bench.registry.rank_info("run-a", 9) is None
    assert bench.registry.connected_ranks("other") == bench.registry.all_ranks("other") == []


def test_what_is_wrong_with_a_run_is_said_with_it(bench: Bench) -> None:
    bench.register(stream_record("a", 1))
    (before,) = bench.registry.runs()
    assert "finding" not in before
    bench.registry.say_verdicts(lambda run_id, is_over: {"finding": (run_id, is_over)})
    (run,) = bench.registry.runs()
    assert run["finding"] == ("run-a", False)
    bench.registry.take_goodbye("a", Goodbye(1, 77, "exit", 0))
    ended = bench.registry.run("run-a")
    assert ended is not None
    assert ended["finding"] == ("run-a", True)


def test_an_agents_account_is_plain_data(bench: Bench) -> None:
    bench.register(stream_record("a", 1, rank=0))
    account = AgentAccount(cpu_us={"sampler": 7}, wanted_rate_hz=10.0)
    processes = [ProcessMemory(7, "python", 3)]
    status = AgentStatus(10.0, 0.001, account=account, processes=processes)
    payload = bench.registry.take_status("a", status)
    assert payload["account"]["cpu_us"] == {"sampler": 7}
    assert payload["account"]["wanted_rate_hz"] == 10.0
    assert payload["processes"] == [{"pid": 7, "command": "python", "bytes": 3}]
    assert bench.registry.take_status("a", AgentStatus(10.0, 0.001))["account"] is None


def test_the_fullest_rank_and_the_exit_code_that_matters(bench: Bench) -> None:
    bench.register(stream_record("a", 1, rank=0))
    bench.register(stream_record("b", 2, rank=1))
    columns = made_columns(30, unknown_share=0.0)
    bench.registry.take_rows("b", 1, made_rows(columns))
    for stream, code in (("a", 0), ("b", 1)):
        bench.registry.take_goodbye(stream, Goodbye(1, 9, "exit", code))
    run = bench.registry.run("run-a")
    assert run is not None
    assert (run["fullest_rank"], run["exit_code"]) == (1, 1)


def test_only_runs_that_are_not_live_leave_memory() -> None:
    bench = Bench(max_runs=2)
    for number in range(2):
        run_id = f"run-{number}"
        bench.register(stream_record(f"s{number}", number, run_id=run_id), RunInfo(run_id, "n"))
    bench.registry.take_goodbye("s1", Goodbye(1, 9, "exit"))
    bench.register(stream_record("s2", 2, run_id="run-2"), RunInfo("run-2", "n"))
    assert {run["id"] for run in bench.registry.runs()} == {"run-0", "run-2"}
    bench.register(stream_record("s3", 3, run_id="run-3"), RunInfo("run-3", "n"))
    assert len(bench.registry.runs()) == 3  # all of them live: none may go
    assert bench.registry.take_message("s3", 1)


def test_how_far_each_rank_is(bench: Bench) -> None:
    bench.register(stream_record("a", 1, rank=0))
    bench.register(stream_record("b", 2, rank=1))
    bench.registry.take_rows("b", 1, made_rows(made_columns(30)))
    bench.now_ns += SECOND_NS
    paces = bench.registry.paces("run-a")
    assert list(paces) == [1], "rank 0 has told nothing yet"
    assert (paces[1].step, paces[1].age_s) == (9, 1.0)
    assert bench.registry.paces("unknown") == {}
