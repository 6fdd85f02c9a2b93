"""Run inside an environment with the wheel's server extra and torch: the demo reaches a browser."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.sync.client import connect

DEADLINE_S = 90.0
ALLOCATED = "allocated_bytes.all.current"


def read_url(demo: subprocess.Popen[str]) -> str:
    """Wait for the line on standard output that names the page."""
    assert demo.stdout is not None
    for line in demo.stdout:
        for word in line.split():
            if word.startswith("http://") and "token=" in word:
                return word
    raise AssertionError(f"the demo ended without an address, exit code {demo.wait(10)}")


def fetch(url: str, token: str) -> tuple[str, bytes]:
    """Content type and body of one address."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.headers["Content-Type"], response.read()


def check_page(base: str, token: str) -> None:
    """The page and the chart library come out of the wheel and of the installed plotly."""
    content_type, page = fetch(f"{base}/", token)
    assert content_type.startswith("text/html"), content_type
    assert b"<script" in page, page[:200]
    content_type, plotly = fetch(f"{base}/vendor/plotly.min.js", token)
    assert "javascript" in content_type, content_type
    assert len(plotly) > 1_000_000, len(plotly)


def run_of_the_demo(base: str, token: str) -> str:
    """Wait until the demo's job has registered, and return the run's id."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        runs: list[dict[str, Any]] = json.loads(fetch(f"{base}/api/v1/runs", token)[1])
        if runs:
            assert runs[0]["emulated"] in (True, False)
            return str(runs[0]["id"])
        time.sleep(0.2)  # the only way to learn of it over REST is to ask again
    raise AssertionError(f"no run after {DEADLINE_S} s")


def first_sample(base: str, token: str, run: str) -> dict[str, Any]:
    """Subscribe as the page does and return the first event with samples."""
    headers = {"Authorization": f"Bearer {token}"}
    url = base.replace("http://", "ws://") + "/ws/live"
    with connect(url, additional_headers=headers, compression=None) as socket:
        hello = json.loads(socket.recv(timeout=10))
        assert hello["type"] == "hello", hello
        socket.send(
            json.dumps({"type": "subscribe_run", "id": 1, "run": run, "fields": [ALLOCATED]})
        )
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            message = json.loads(socket.recv(timeout=deadline - time.monotonic()))
            event = message.get("event", {})
            if message["type"] == "event" and event["kind"] == "samples" and event["time_ns"]:
                return dict(event)
    raise AssertionError(f"no sample after {DEADLINE_S} s")


def main() -> None:
    """Start the demo from the wheel and follow it until its first sample arrives."""
    command = [Path(sys.executable).with_name("vramscope"), "demo", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        try:
            url = read_url(demo)
            token = parse_qs(urlsplit(url).query)["token"][0]
            base = url.partition("/?")[0]
            check_page(base, token)
            sample = first_sample(base, token, run_of_the_demo(base, token))
            assert sample["columns"][ALLOCATED], sample
        finally:
            demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=30)
    print("wheel-smoke: page, plotly and the demo's first sample arrived")


if __name__ == "__main__":
    main()
