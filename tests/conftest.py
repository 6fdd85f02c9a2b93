"""For every test: swallowed errors come up again, threads are gone, markers skip what is absent."""

from __future__ import annotations

import functools
import importlib.util
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vramscope import guard

# Before PyTorch is loaded, here or in a job: threads that wait for each other in a loop take the
# processors from whatever else runs, and the jobs of the tests are too small to gain by them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

THREAD_PREFIX = "vramscope-"
THREADS_END_WITHIN_S = 2.0
SPOOL_VARIABLE = "VRAMSCOPE_SPOOL_DIR"
ROOT = Path(__file__).parent
BEGUN_FIRST = ("integration", "faults", "e2e", "frontend")
"""Folders whose tests wait for jobs and browsers."""


@pytest.fixture(autouse=True)
def guard_reraises(request: pytest.FixtureRequest) -> Iterator[None]:
    """What the agent's guard swallows in production fails the test here."""
    caught: list[tuple[str, Exception]] = []
    guard.set_error_hook(lambda where, error: caught.append((where, error)))
    yield
    guard.set_error_hook(None)
    if request.node.get_closest_marker("expects_guarded_errors"):
        assert caught, "marked expects_guarded_errors, but the guard swallowed nothing"
    elif caught:
        where, error = caught[0]
        raise AssertionError(f"the guard swallowed {len(caught)} errors: {where}") from error


@pytest.fixture(autouse=True)
def no_leaked_threads() -> Iterator[None]:
    """A test that starts the agent also ends it."""
    before = set(threading.enumerate())
    yield
    deadline_s = time.monotonic() + THREADS_END_WITHIN_S
    leaked = [
        thread
        for thread in threading.enumerate()
        if thread not in before and thread.name.startswith(THREAD_PREFIX)
    ]
    for thread in leaked:
        thread.join(max(0.0, deadline_s - time.monotonic()))
    assert [thread.name for thread in leaked if thread.is_alive()] == []


@pytest.fixture(autouse=True, scope="session")
def spool_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Jobs of tests leave nothing among what real jobs have left on this machine."""
    before = os.environ.get(SPOOL_VARIABLE)
    os.environ[SPOOL_VARIABLE] = str(tmp_path_factory.mktemp("spool") / "vramscope")
    yield
    if before is None:
        del os.environ[SPOOL_VARIABLE]
    else:
        os.environ[SPOOL_VARIABLE] = before


@functools.cache
def _why_absent(marker: str) -> str | None:
    if marker == "browser":
        return None if Path("/usr/bin/chromium").exists() else "no /usr/bin/chromium"
    if importlib.util.find_spec("torch") is None:
        return "no torch"
    if marker == "gpu":
        import torch

        return None if torch.cuda.is_available() else "no CUDA device"
    return None


def _place_in_queue(item: pytest.Item) -> int:
    folder = item.path.relative_to(ROOT).parts[0]
    return BEGUN_FIRST.index(folder) if folder in BEGUN_FIRST else len(BEGUN_FIRST)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs something that this machine does not have.

    Where several processes share the tests, the long files are begun first: at the end only short
    ones are left, and no process is through while another has minutes to go.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=_place_in_queue)
    for item in items:
        for marker in ("gpu", "torch", "browser"):
            if item.get_closest_marker(marker):
                reason = _why_absent(marker)
                if reason is not None:
                    item.add_marker(pytest.mark.skip(reason=reason))
