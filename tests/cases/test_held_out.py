"""Jobs that no judge was changed for: by hand, where verdicts are counted."""

from __future__ import annotations

import os

import pytest

from tests.cases.case import Case, mistakes
from tests.cases.held import CASES
from tests.cases.test_cases import note, parameter
from tests.support.case_run import run_case
from tests.support.job_process import Api

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]


@pytest.mark.skipif(
    not os.environ.get("VRAMSCOPE_TEST_VERDICTS"), reason="only where verdicts are counted"
)
@pytest.mark.parametrize("case", [parameter(case) for case in CASES])
def test_its_verdict_is_right(case: Case, api: Api) -> None:
    device = ["--emulate", f"--capacity={case.capacity}"]
    found = run_case(api, case.path, *case.arguments, options=device)
    assert found.code == case.ends, found.errors
    # Once, and never again: that is what is counted.
    note(case, found.versions)
    wrong = mistakes(case, found.versions)
    assert not wrong, "\n".join([*dict.fromkeys(wrong), found.told()])


def test_every_line_that_is_expected_is_marked() -> None:
    for case in CASES:
        if case.expects is not None:
            assert case.lines(case.expects.culprit), case.name
