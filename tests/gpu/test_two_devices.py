"""On two real GPUs: each rank reports its own device, and a command runs on both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.job_process import Api
from tests.support.server_process import ServerProcess
from tests.support.torchrun import torchrun

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


def test_each_rank_has_its_own_device_and_a_command_acts_on_both(api: Api) -> None:
    with torchrun(api, "pair", 1_000_000):
        run = api.wait_for_run(
            "pair",
            lambda run: (
                [(rank["step"] or 0) > 50 for rank in run["ranks"]] == [True, True]
                and all(rank["device_uuid"] for rank in run["ranks"])
            ),
            "50 steps on both ranks",
            timeout_s=120,
        )
        dry = api.command("pair", "empty_cache", dry_run=True)
        command = api.command("pair", "empty_cache+gc_collect")
        stats = api.command("pair", "stats")
        acted_at = max(receipt["step"] for receipt in command["receipts"].values())
        api.wait_for_run(
            "pair",
            lambda run: all(rank["step"] > acted_at + 20 for rank in run["ranks"]),
            "20 more steps: no rank waits for the other",
        )
    assert [rank["devices"][0]["index"] for rank in run["ranks"]] == [0, 1]
    assert len({rank["device_uuid"] for rank in run["ranks"]}) == 2
    assert dry["state"] == command["state"] == stats["state"] == "done"
    for receipt in command["receipts"].values():
        before, after = (receipt[key]["reserved_bytes"] for key in ("before", "after"))
        assert receipt["returned_bytes"] == before - after
