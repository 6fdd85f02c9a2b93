from __future__ import annotations

from tests.support.fake_streams import stream_record
from tests.support.streams import made_columns, made_rows
from vramscope_protocol.messages import Lost
from vramscope_protocol.user_commands import UserCommand, UserParam
from vramscope_server.registry.rank_state import RankState


def test_a_rank_is_what_its_newest_life_is_and_counts_what_all_did() -> None:
    first, second = stream_record("a", 1), stream_record("b", 2)
    rank = RankState(0, first)
    first.summary.take_rows(made_rows(made_columns(10)))
    first.summary.take_lost(Lost(samples={"full": 3}, steps={"full": 1}))
    rank.status = {"rate_hz": 10.0}
    rank.add(second)
    second.summary.take_rows(made_rows(made_columns(4)))
    second.summary.take_lost(Lost(samples={"full": 1, "other": 2}))
    rank.open_streams.add("a")
    assert not rank.connected  # the old life only delivers what it has left
    payload = rank.payload("live")
    assert payload["stream"] == "b"
    assert payload["reattaches"] == 1  # the same process
    assert payload["restarts"] == 0
    assert payload["status"] is None
    assert payload["samples_received"] == 14
    assert (payload["samples_lost"], payload["losses"]) == (6, {"full": 4, "other": 2})
    assert payload["steps_lost"] == 1
    assert payload["step"] == 1
    assert payload["device_name"] == "H200"
    assert payload["device_total_bytes"] == 2**37


def test_another_process_is_a_restart_and_its_steps_go_on_where_the_old_ones_ended() -> None:
    first, second = stream_record("a", 1), stream_record("b", 2)
    first.info.life, second.info.life = "one", "two"
    second.info.started_ns = 99
    rank = RankState(0, first)
    first.summary.take_rows(made_rows(made_columns(30), kind="step"))
    rank.add(second)
    payload = rank.payload("live")
    assert (payload["restarts"], payload["reattaches"], rank.restarted_ns) == (1, 0, 99)
    assert [life["kind"] for life in payload["lives"]] == ["start", "restart"]
    assert [life["last_step"] for life in payload["lives"]] == [9, None]
    assert rank.life_offset("a") == (0, 0)
    assert rank.life_offset("b") == (1, 9)


def test_an_old_life_that_comes_back_does_not_become_the_newest() -> None:
    rank = RankState(0, stream_record("b", 2))
    rank.add(stream_record("a", 1))
    assert rank.newest.uid == "b"


def test_a_message_is_new_once_and_the_store_may_be_behind() -> None:
    rank = RankState(0, stream_record("a", 1, last_seq=5))
    assert not rank.is_new("a", 5, 10)
    assert rank.is_new("a", 9, 10)
    rank.add(stream_record("a", 1, last_seq=7))  # registers again before the commit of 9
    assert not rank.is_new("a", 9, 20)
    assert rank.is_new("a", 10, 30)
    assert rank.last_seen_ns == 30


def test_a_rank_without_devices() -> None:
    record = stream_record()
    record.info.devices = []
    payload = RankState(0, record).payload("lost")
    assert payload["device_name"] is None
    assert payload["device_uuid"] is None
    assert payload["device_total_bytes"] is None
    record.summary.total_bytes = 8
    assert RankState(0, record).device_total_bytes == 8


def test_what_the_job_declares_and_how_it_counts_is_shown() -> None:
    record = stream_record()
    assert RankState(0, record).payload("live")["user_commands"] == []
    record.info.user_commands = [UserCommand("user.set_lr", params=[UserParam("lr", "float")])]
    record.info.steps_from_start = True
    payload = RankState(0, record).payload("live")
    assert payload["user_commands"][0]["params"][0]["name"] == "lr"
    assert payload["steps_from_start"] is True


def test_the_pace_is_that_of_the_newest_life() -> None:
    rank = RankState(0, stream_record("a", 1))
    rows = made_rows(made_columns(30))
    rank.take_rows("a", rows, 50)
    pace = rank.pace.pace(50)
    assert pace is not None
    assert pace.step == 9
    rank.add(stream_record("b", 2))
    rank.take_rows("a", rows, 60)  # the old life delivers what it has left
    assert rank.pace.pace(60) is None
