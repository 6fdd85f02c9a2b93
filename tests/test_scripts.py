"""The verbs: Makefile, CI and scripts agree, and installing twice costs nothing."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(path for path in (ROOT / "scripts").iterdir() if path.suffix == "")
VERBS = {"demo", "test", "check", "bench", "gpu-check"}


def test_makefile_calls_one_script_for_each_verb() -> None:
    rules = dict(re.findall(r"^([a-z-]+):\n\t@scripts/(\S+) \$\(ARGS\)$", makefile(), re.MULTILINE))
    assert rules == {verb: verb for verb in VERBS}
    phony = re.search(r"^\.PHONY: (.+)$", makefile(), re.MULTILINE)
    assert phony
    assert set(phony[1].split()) == VERBS | {"help"}


def makefile() -> str:
    return (ROOT / "Makefile").read_text()


def test_ci_ends_with_make_test() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert lines[-1] == "make test"
    assert not [line for line in lines if "scripts/" in line and not line.startswith("#")]


@pytest.mark.parametrize("script", [*SCRIPTS, ROOT / ".ci" / "run"], ids=lambda path: path.name)
def test_scripts_are_strict_and_executable(script: Path) -> None:
    lines = script.read_text().splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines
    assert os.access(script, os.X_OK)


def test_every_script_is_checked_by_shellcheck() -> None:
    check = (ROOT / "scripts" / "check").read_text().replace("\\\n", " ")
    command = re.search(r'^run "shellcheck" shellcheck (.+)$', check, re.MULTILINE)
    assert command
    names = {path.relative_to(ROOT).as_posix() for path in SCRIPTS} | {".ci/run"}
    assert set(command[1].split()) == names


def test_install_refuses_an_unknown_level() -> None:
    done = subprocess.run(
        ["scripts/install", "everything"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "install: expected demo or dev, got 'everything'\n"


def test_gpu_check_says_what_is_missing(tmp_path: Path) -> None:
    # A Python without torch stands for a machine without a GPU.
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    done = subprocess.run(
        ["scripts/gpu-check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, "PYTHON": str(python)},
    )
    assert done.returncode == 2
    assert "no torch that sees a CUDA device" in done.stderr
    assert done.stderr.count("\n") == 1


def test_second_install_does_nothing() -> None:
    stamp = ROOT / ".venv" / ".installed-dev"
    if not stamp.exists():
        pytest.skip("this environment was not made by scripts/install")
    before = stamp.stat().st_mtime_ns
    started = time.monotonic()
    done = subprocess.run(
        ["scripts/install", "dev"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert stamp.stat().st_mtime_ns == before
    assert time.monotonic() - started < 5
