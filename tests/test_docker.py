"""The compose file and the Dockerfiles fit the repository; no Docker engine is needed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DOCKERFILES = [ROOT / service["build"]["dockerfile"] for service in COMPOSE["services"].values()]


def compose_command() -> list[str]:
    """The Docker client's compose plugin, else the stand-alone program; neither needs an engine."""
    if shutil.which("docker"):
        plugin = subprocess.run(
            ["docker", "compose", "version"], capture_output=True, timeout=60, check=False
        )
        if plugin.returncode == 0:
            return ["docker", "compose"]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    pytest.skip("no docker compose on this machine")


def config(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*compose_command(), "--file", str(ROOT / "docker-compose.yml"), "config"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environment},
    )


def test_compose_accepts_the_file() -> None:
    done = config({"VRAMSCOPE_TOKEN": "secret"})
    assert done.returncode == 0, done.stderr
    services = yaml.safe_load(done.stdout)["services"]
    assert set(services) == {"server", "training"}
    assert all(s["environment"]["VRAMSCOPE_TOKEN"] == "secret" for s in services.values())


def test_compose_refuses_to_start_without_a_token() -> None:
    done = config({})
    assert done.returncode != 0
    assert "VRAMSCOPE_TOKEN" in done.stderr


def test_the_page_is_published_to_this_machine_only() -> None:
    assert COMPOSE["services"]["server"]["ports"] == ["127.0.0.1:8470:8470"]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: str(path.parent.name))
def test_what_a_dockerfile_copies_exists(dockerfile: Path) -> None:
    copied = re.findall(r"^COPY (.+) \S+$", dockerfile.read_text(), re.MULTILINE)
    assert copied
    for source in " ".join(copied).split():
        assert (ROOT / source).exists(), source
        # .dockerignore lets in only what it names.
        allowed = (ROOT / ".dockerignore").read_text().splitlines()
        assert f"!{source.partition('/')[0]}" in allowed


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: str(path.parent.name))
def test_containers_do_not_run_as_root(dockerfile: Path) -> None:
    users = re.findall(r"^USER (\S+)$", dockerfile.read_text(), re.MULTILINE)
    assert users == ["vramscope"]
