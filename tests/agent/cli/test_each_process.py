from __future__ import annotations

import argparse
import json
from typing import Any

import pytest

from vramscope.attaching.outcome import AttachError, Outcome
from vramscope.cli.each_process import add_process_options, for_each_process


def outcome(pid: int, **values: Any) -> Outcome:
    usual: dict[str, Any] = {
        "pid": pid,
        "ok": True,
        "already": False,
        "run_id": "id",
        "run_name": "train",
        "rank": 0,
        "url": "",
        "version": "",
        "message": "",
        "method": "pending_call",
        "stopped_us": 1.0,
    }
    return Outcome(**usual | values)


def do(pid: int) -> Outcome:
    if pid == 1:
        raise AttachError("it is blocked", "blocked", 'File "train.py"\n\x1b[31mred')
    if pid == 2:
        raise AttachError("no such process", "gone")
    if pid == 3:
        raise KeyboardInterrupt
    return outcome(pid)


def text_of(outcome: Outcome) -> str:
    return f"attached to {outcome.pid}\x1b"


def test_each_is_done_whatever_became_of_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert for_each_process([10, 1, 11], do, text_of, as_json=False) == 1
    out, err = capsys.readouterr()
    # Nothing that comes from a process acts on the terminal.
    assert out == "attached to 10?\nattached to 11?\n"
    assert err == 'vramscope: it is blocked\n    File "train.py"\n    ?[31mred\n'


@pytest.mark.parametrize(("pids", "code"), [([10], 0), ([1], 1), ([2], 2), ([1, 2, 10], 2)])
def test_the_exit_code_is_the_worst(pids: list[int], code: int) -> None:
    assert for_each_process(pids, do, text_of, as_json=True) == code


def test_one_is_an_object_and_several_are_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    for_each_process([10], do, text_of, as_json=True)
    assert json.loads(capsys.readouterr().out)["pid"] == 10
    for_each_process([10, 1], do, text_of, as_json=True)
    assert [one["ok"] for one in json.loads(capsys.readouterr().out)] == [True, False]


def test_an_interrupt_ends_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert for_each_process([3, 10], do, text_of, as_json=False) == 130
    out, err = capsys.readouterr()
    assert (out, err) == ("", "vramscope: given up: process 3 is not waited for any more\n")


def test_an_interrupt_is_told_to_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert for_each_process([10, 3, 11], do, text_of, as_json=True) == 130
    results = json.loads(capsys.readouterr().out)
    assert [(one["pid"], one["ok"]) for one in results] == [(10, True), (3, False)]
    assert results[1]["kind"] == "interrupted"


def test_numbers_and_seconds_are_checked() -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_process_options(parser)
    options = parser.parse_args(["7", "8", "--wait", "1.5"])
    assert (options.pids, options.wait, options.json) == ([7, 8], 1.5, False)
    for wrong in (["0"], ["-1"], ["x"], ["4294967296"], ["--wait", "-1", "7"], ["--wait=nan", "7"]):
        with pytest.raises((argparse.ArgumentError, SystemExit)):
            parser.parse_args(wrong)
