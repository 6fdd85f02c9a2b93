"""Every case, run unchanged under the agent on an emulated device and judged by a real server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cases.case import Case, is_sure, missing, mistakes, said_wrongly
from tests.cases.table import CASES, runs_now
from tests.support.case_run import CaseRun, run_case
from tests.support.job_process import Api

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]


def parameter(case: Case) -> object:
    marks = [pytest.mark.skipif(not runs_now(case.name), reason="only where verdicts are counted")]
    if case.wrong:
        marks.append(pytest.mark.xfail(strict=True, reason=case.wrong))
    elif case.sometimes:
        marks.append(pytest.mark.xfail(strict=False, reason=case.sometimes))
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", [parameter(case) for case in CASES if not case.needs])
def test_its_verdict_is_right(case: Case, api: Api) -> None:
    found = judged(case, api)
    if [*missing(case, found.versions)] and not case.wrong:
        # How much an agent can look at depends on the machine: once more, but only for that.
        found = judged(case, api)
    note(case, found.versions)
    wrong = mistakes(case, found.versions)
    assert not wrong, "\n".join([*dict.fromkeys(wrong), found.told()])


def judged(case: Case, api: Api) -> CaseRun:
    """Run a case; what is said wrongly fails at once."""
    device = ["--emulate", f"--capacity={case.capacity}"] if case.emulated else []
    found = run_case(api, case.path, *case.arguments, options=device, environment=case.environment)
    assert found.code == case.ends, found.errors
    wrong = [what for _, what in said_wrongly(case, found.versions)]
    assert not wrong, "\n".join([*dict.fromkeys(wrong), found.told()])
    return found


def note(case: Case, versions: list[dict[str, Any]]) -> None:
    """Write down what was told, where it is to be counted (docs/verdicts.md)."""
    path = os.environ.get("VRAMSCOPE_TEST_VERDICTS")
    if not path:
        return
    verdict = {
        "case": case.name,
        "expects": [] if case.expects is None else list(case.expects.kinds),
        "is_found": not [*missing(case, versions)],
        "told": sorted({each["kind"] for each in versions if is_sure(each)}),
        "told_wrongly": sorted({kind for kind, _ in said_wrongly(case, versions)}),
    }
    with Path(path).open("a") as file:
        file.write(json.dumps(verdict) + "\n")
