from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def token(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vramscope", "token", *words],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_it_is_the_servers_token_command(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'vramscope.db'}"
    made = token(
        "create", "--scope", "view", "--name", "for a test", "--database", database, "--json"
    )
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)
    listed = token("list", "--database", database)
    assert listed.returncode == 0
    assert "for a test" in listed.stdout


def test_its_exit_code_is_the_servers() -> None:
    done = token("no-such-action")
    assert done.returncode == 2
    assert "no-such-action" in done.stderr
