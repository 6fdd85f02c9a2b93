"""The local server of who attaches, where the process would not find it by itself."""

from __future__ import annotations

import os
from collections.abc import Mapping

from vramscope.local.runtime_file import LocalServer, is_healthy, read_local_server, runtime_folder
from vramscope.processes.process import Process


def server_options(process: Process, environment: Mapping[str, str]) -> dict[str, str]:
    """Options that lead ``process`` to the local server that runs here; none if it finds it.

    A job that was started from cron or a service has another runtime folder than a shell, and
    would start a second server. The token goes to processes of this very user only, outside of
    containers: with it one may control every job that the server knows.

    Args:
        process: who is to connect.
        environment: what it was started with.
    """
    is_own = set(process.uids) == {os.getuid()} and not process.container
    if not is_own or not process.same_net_namespace:
        return {}
    if runtime_folder(environment) == runtime_folder():
        return {}
    server = read_local_server()
    if server is None or not is_healthy(server):
        return {}
    return {"url": server.url, "token": server.token}


def page_with_token(url: str, server: LocalServer | None) -> str:
    """Address of a page as this user can open it: with the token where the server is their own."""
    if server is None or "token=" in url:
        return url
    base = server.address.http_url
    return f"{url}?token={server.token}" if url == base or url.startswith(f"{base}/") else url
