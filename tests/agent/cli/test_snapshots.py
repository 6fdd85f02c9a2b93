from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_api import FakeApi
from vramscope.cli import main

LIST = "GET /api/v1/runs/train/snapshots"
PICKLE = "GET /api/v1/snapshots/s1/pickle"
SNAPSHOT: dict[str, Any] = {
    "id": "s1",
    "rank": 3,
    "step": 120,
    "taken_ns": 1_700_000_000_000_000_000,
    "mode": "alloc",
    "name": "",
    "raw_bytes": 5 << 20,
    "wire_bytes": 1 << 20,
    "received_bytes": 1 << 20,
    "state": "complete",
}
COMING = {**SNAPSHOT, "id": "s2", "rank": None, "state": "receiving", "received_bytes": 1 << 19}


def test_snapshots_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeApi({LIST: [(200, {"snapshots": [SNAPSHOT, COMING]})]}) as fake:
        assert main(["snapshots", "train", "--url", fake.url]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["ID", "RANK", "STEP"]
    assert first.split()[:3] == ["s1", "3", "120"]
    assert first.endswith("alloc     5 MiB  complete")
    assert second.split()[1] == "-"
    assert second.endswith("receiving (512 KiB of 1 MiB)")


def test_json_is_what_the_server_says(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeApi({LIST: [(200, {"snapshots": [SNAPSHOT]})]}) as fake:
        assert main(["snapshots", "train", "--json", "--url", fake.url]) == 0
    assert json.loads(capsys.readouterr().out) == {"snapshots": [SNAPSHOT]}


def test_one_is_downloaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytes(range(256)) * 5000
    path = tmp_path / "a.pickle"
    with FakeApi({PICKLE: [(200, content)]}) as fake:
        arguments = ["snapshots", "train", "--download", "s1", "-o", str(path)]
        assert main([*arguments, "--url", fake.url]) == 0
    assert path.read_bytes() == content
    assert capsys.readouterr().out == f"{path}: 1.22 MiB\n"
    assert list(tmp_path.iterdir()) == [path]


def test_without_a_name_it_is_called_after_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeApi({PICKLE: [(200, b"x")]}) as fake:
        assert main(["snapshots", "train", "--download", "s1", "--url", fake.url]) == 0
    assert (tmp_path / "s1.pickle").read_bytes() == b"x"


def test_one_that_does_not_come_whole_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeApi({PICKLE: [(200, b"some of it")]}) as fake:
        fake.cut_off_bytes = 5
        arguments = ["snapshots", "train", "--download", "s1", "-o", str(tmp_path / "a")]
        assert main([*arguments, "--url", fake.url]) == 1
    assert "expected 15 bytes, got 10" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_refusal_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = {"error": {"code": "conflict", "message": "it has not arrived yet", "detail": {}}}
    with FakeApi({PICKLE: [(409, error)]}) as fake:
        arguments = ["snapshots", "train", "--download", "s1", "-o", str(tmp_path / "a")]
        assert main([*arguments, "--url", fake.url]) == 1
    assert "it has not arrived yet" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeApi({PICKLE: [(200, b"x")]}) as fake:
        arguments = ["snapshots", "train", "--download", "s1", "-o", str(tmp_path / "no" / "a")]
        assert main([*arguments, "--url", fake.url]) == 2
    assert "cannot write" in capsys.readouterr().err
