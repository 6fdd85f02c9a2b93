"""One server for all cases of a worker, which judges more often than people need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.job_process import Api
from tests.support.server_thread import TOKEN, server_thread
from vramscope_server.settings import Limits

OFTEN = Limits(judge_interval_s=0.5, ask_interval_s=0.5)
"""The jobs are over in seconds."""


@pytest.fixture(autouse=True)
def no_leaked_threads() -> None:
    """The server is one for all tests, and so are its threads. No agent runs in this process."""


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with server_thread(tmp_path_factory.mktemp("cases"), OFTEN) as server:
        yield Api(server.url, TOKEN)
