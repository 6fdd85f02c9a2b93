"""What a job keeps because it needs it is no leak, and is not said to be kept without use."""

from __future__ import annotations

import os

import pytest

from tests.cases.case import Case, mistakes
from tests.cases.in_use import JOBS
from tests.cases.leaks import NO_LEAK
from tests.support.case_run import run_case
from tests.support.job_process import Api

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]

ALWAYS = ("average", "ring")
"""The others only where verdicts are counted."""


@pytest.mark.parametrize("name", JOBS)
def test_nothing_is_wrong_with_it(name: str, api: Api) -> None:
    if name not in ALWAYS and not os.environ.get("VRAMSCOPE_TEST_VERDICTS"):
        pytest.skip("only where verdicts are counted")
    case = Case(
        f"in_use-{name}",
        "in_use.py",
        (name,),
        never=(*NO_LEAK, "retention"),
        never_says=r"Leaking|have stayed since",
        quiet=True,
    )
    found = run_case(api, case.path, name, options=["--emulate", "--capacity=4GiB"])
    assert found.code == 0, found.errors
    wrong = mistakes(case, found.versions)
    assert not wrong, "\n".join([*dict.fromkeys(wrong), found.told()])
