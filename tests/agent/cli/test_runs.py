from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.fake_api import FakeApi
from vramscope.cli import main

RUN: dict[str, Any] = {
    "id": "abc",
    "name": "train",
    "state": "live",
    "started_ns": 1_700_000_000_000_000_000,
    "world_size": 8,
    "emulated": False,
    "step": 120,
    "peak_reserved_bytes": 3 << 30,
    "device_name": "NVIDIA H200",
}
UNKNOWN = {**RUN, "id": "def", "step": None, "peak_reserved_bytes": None, "device_name": None}


def test_runs_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeApi({"GET /api/v1/runs": [(200, [RUN, UNKNOWN])]}) as fake:
        assert main(["runs", "--url", fake.url]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["ID", "NAME", "STATE"]
    assert first.split()[:5] == ["abc", "train", "live", "8", "120"]
    assert first.endswith("3 GiB          NVIDIA H200")
    assert second.split()[4] == "-"


def test_json_is_what_the_server_says(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeApi({"GET /api/v1/runs": [(200, [RUN])]}) as fake:
        assert main(["runs", "--json", "--url", fake.url]) == 0
    assert json.loads(capsys.readouterr().out) == [RUN]


def test_without_a_local_server_it_says_what_to_start(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("VRAMSCOPE_URL", raising=False)
    assert main(["runs"]) == 2
    assert "no local server is running" in capsys.readouterr().err
