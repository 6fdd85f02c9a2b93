"""C47: runs are compared by what is theirs, not by one number of the driver."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.case import FOLDER
from tests.support.case_run import run_case
from tests.support.job_process import Api

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]

MIB = 1 << 20


def account(api: Api, layers: int) -> dict[str, Any]:
    """The account of the last step of a run with so many layers."""
    device = ["--emulate", "--capacity=4GiB"]
    found = run_case(api, FOLDER / "C47.py", str(layers), options=device)
    assert found.code == 0, found.errors
    answer: dict[str, Any] = api.get(f"/api/v1/runs/{found.run['id']}/waterfall?rank=0")
    return answer


def test_c47_like_is_compared_with_like(api: Api) -> None:
    large, small = (account(api, layers)["step"]["peak"]["bytes"] for layers in (8, 4))
    assert large["parameters"] / small["parameters"] == pytest.approx(2)
    # Live peaks halve; what the allocator keeps, and what lies outside, is told apart from them.
    assert large["allocated"] / small["allocated"] == pytest.approx(2, rel=0.1)
    for one in (large, small):
        assert {"allocated", "reserved", "outside"} <= set(one)
