"""What ``vramscope ps`` prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_training import FakeTorch
from vramscope.cli import main
from vramscope.cli import ps as command
from vramscope.processes.gpu_memory import GpuUse
from vramscope.processes.training_processes import TrainingProcess


def made(pid: int = 41327, **changes: Any) -> TrainingProcess:
    """One process as the list has it."""
    usual: dict[str, Any] = {
        "pid": pid,
        "ns_pid": pid,
        "user": "ada",
        "command": "python train.py",
        "python": "3.12",
        "torch": "2.9.1+cu128",
        "gpu_bytes": 3 << 30,
        "gpus": [GpuUse(0, "GPU-a", "H200", 2 << 30), GpuUse(3, "GPU-d", "H200", 1 << 30)],
        "attachable": True,
        "why_not": None,
        "fix": None,
        "obstacle": None,
        "attached": False,
        "workers": 0,
        "started_ns": 1_700_000_000_000_000_000,
        "start_ticks": 1,
        "container": False,
        "role": "training",
        "parent": None,
        "readable": True,
    }
    return TrainingProcess(**usual | changes)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Say which processes there are."""

    def give(*processes: TrainingProcess) -> None:
        monkeypatch.setattr(command, "training_processes", lambda *, everything: [*processes])

    return give


def rows(output: str) -> list[list[str]]:
    """The cells of each line; they are separated by two spaces at least."""
    return [
        [cell.strip() for cell in line.strip().split("  ") if cell] for line in output.splitlines()
    ]


def test_processes_are_a_table(
    given: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    given(made(), made(7, attached=True, workers=8, container=True, gpus=[], gpu_bytes=0))
    assert main(["ps"]) == 0
    captured = capsys.readouterr()
    head, first, second = rows(captured.out)
    assert head == [*("PID", "USER", "GPU", "MEMORY", "PYTHON", "TORCH", "ATTACHABLE", "COMMAND")]
    assert first == [
        *("41327", "ada", "0,3", "3 GiB", "3.12", "2.9.1+cu128", "yes", "python train.py")
    ]
    assert second[2:4] == ["-", "-"]
    assert second[6:] == ["attached", "python train.py", "[8 workers, container]"]
    assert captured.err == ""


def test_what_is_unknown_is_a_question_mark(
    given: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    given(made(gpu_bytes=None, gpus=[], python=None, torch=None, readable=False))
    assert main(["ps"]) == 0
    assert rows(capsys.readouterr().out)[1][2:6] == ["?", "?", "?", "?"]


def test_a_process_without_torch_has_none(
    given: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    given(made(1, torch=None), made(2, torch=""))
    assert main(["ps"]) == 0
    _, without, unknown = rows(capsys.readouterr().out)
    assert (without[5], unknown[5]) == ("-", "?")


def test_below_the_table_stands_what_helps(
    given: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    given(
        made(
            attachable=False,
            obstacle="uid",
            why_not="it belongs to user bob (uid 7)",
            fix="sudo vramscope attach 41327",
        )
    )
    assert main(["ps"]) == 0
    captured = capsys.readouterr()
    assert "no: uid" in captured.out
    assert captured.err == (
        "vramscope: PID 41327 cannot be attached to: it belongs to user bob (uid 7); "
        "sudo vramscope attach 41327\n"
    )


def test_workers_and_launchers_are_listed_on_request(
    given: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    worker = made(8, role="worker", parent=7, attachable=False, obstacle="worker")
    given(made(7, workers=1), worker, made(9, role="launcher"))
    assert main(["ps"]) == 0
    assert [row[0] for row in rows(capsys.readouterr().out)] == ["PID", "7"]
    assert main(["ps", "--all"]) == 0
    captured = capsys.readouterr()
    assert [row[0] for row in rows(captured.out)] == ["PID", "7", "8", "9"]
    assert "[worker of 7]" in captured.out
    assert "[launcher]" in captured.out
    assert captured.err == ""


def test_processes_that_hide_are_named(
    given: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    given(made(1), made(5, role="other", readable=False), made(6, role="other"))
    assert main(["ps"]) == 0
    assert capsys.readouterr().err.endswith("root can tell: 5\n")


def test_an_empty_list_says_what_to_do(
    given: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    given()
    assert main(["ps"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "vramscope run" in captured.err
    assert main(["ps", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_json_has_everything_known(
    given: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    given(made(), made(9, role="launcher"))
    assert main(["ps", "--json"]) == 0
    captured = capsys.readouterr()
    (only,) = json.loads(captured.out)
    assert only["pid"] == 41327
    assert only["gpus"][1] == {"index": 3, "uuid": "GPU-d", "name": "H200", "bytes": 1 << 30}
    assert only["why_not"] is None
    assert set(only) == set(TrainingProcess.__struct_fields__)
    assert captured.err == ""


def test_a_real_process_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeTorch(tmp_path).running() as (pid,):
        assert main(["ps", "--json"]) == 0
    listed = {each["pid"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed[pid]["torch"] == "2.9.1+cu128"


def test_a_wrong_option_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ps", "--none"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
