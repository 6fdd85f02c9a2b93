from __future__ import annotations

import pytest

from tests.support.server_commands import S, answer, make_command
from vramscope_server.commands.summary import command_event, format_bytes, sentence

GIB = 1 << 30


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1536, "1.5 KiB"),
        (3 << 20, "3.0 MiB"),
        (int(19.7 * GIB), "19.7 GiB"),
    ],
)
def test_format_bytes(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text


def test_the_sum_over_the_ranks() -> None:
    record = make_command([0, 1])
    record.answer(0, answer("done", returned_bytes=GIB, step=7))
    record.answer(1, answer("done", 104, returned_bytes=GIB, step=8))
    assert sentence(record) == "empty_cache returned 2.0 GiB on 2 ranks"
    event = command_event(record)
    assert (event["rank"], event["step"], event["time_ns"]) == (None, 8, 104 * S)
    assert event["kind"] == "command"
    assert event["data"] == {
        "command_id": "c1",
        "name": "empty_cache",
        "dry_run": False,
        "state": "done",
        "ranks": [0, 1],
        "returned_bytes": 2 * GIB,
    }


def test_a_dry_run_only_would() -> None:
    record = make_command(dry_run=True)
    record.answer(0, answer("done", returned_bytes=0))
    assert sentence(record) == "empty_cache (dry run) would return 0 bytes on rank 0"
    assert command_event(record)["rank"] == 0


def test_a_command_that_measures_nothing() -> None:
    record = make_command(name="reset_peaks")
    record.answer(0, answer("done"))
    assert sentence(record) == "reset_peaks done on rank 0"
    assert command_event(record)["data"]["returned_bytes"] is None


def test_the_worst_answer_speaks() -> None:
    record = make_command([0, 1])
    record.answer(0, answer("done", returned_bytes=GIB))
    record.answer(1, answer("expired", message="no optimizer step within 30 s"))
    assert sentence(record) == "empty_cache expired on 2 ranks: no optimizer step within 30 s"
