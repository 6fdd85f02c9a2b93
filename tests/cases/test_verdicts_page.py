"""docs/verdicts.md lists every case with its tests, and names those that are told wrongly."""

from __future__ import annotations

import ast
import re

from tests.cases.table import CASES
from tests.support.job_process import REPOSITORY

PAGE = REPOSITORY / "docs/verdicts.md"
ROW = re.compile(r"^\| (C\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`([\w./-]+?)(?:::(\w+))?`")
KINDS = 55


def rows() -> dict[str, tuple[str, str]]:
    return {case: (tests, verdict) for case, _, tests, verdict in ROW.findall(PAGE.read_text())}


def test_all_cases_are_listed() -> None:
    assert len(rows()) == KINDS
    named = {name for tests, _ in rows().values() for name in re.findall(r"C\d\d[\w-]*", tests)}
    assert {case.name for case in CASES} <= named


def test_named_tests_exist() -> None:
    missing = []
    for tests, _ in rows().values():
        for path, function in TEST.findall(tests):
            file = REPOSITORY / path
            if not file.is_file():
                missing.append(path)
            elif function and function not in _functions(file.read_text()):
                missing.append(f"{path}::{function}")
    assert missing == []


def test_what_is_told_wrongly_is_said_to_be() -> None:
    wrong = {case.name[:3] for case in CASES if case.wrong}
    said = {case for case, (_, verdict) in rows().items() if "wrong" in verdict}
    assert said == wrong
    for case in CASES:
        if case.wrong or case.sometimes:
            assert f"**{case.name}**" in PAGE.read_text(), case.name


def test_what_needs_a_gpu_is_said_to() -> None:
    needs = {case.name[:3] for case in CASES if case.needs == "gpu"} | {"C44"}
    assert {case for case, (tests, _) in rows().items() if "(GPU)" in tests} == needs


def _functions(source: str) -> set[str]:
    return {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
