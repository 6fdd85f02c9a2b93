"""The command ``explain_growth`` on real jobs under emulation: the line, and what holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import Api, finish, start, wait_until, watched_command
from tests.support.server_process import ServerProcess

pytest.importorskip("torch")

MIB = 1 << 20
ASKED_AND_ANSWERED = ("explain_growth", "vramscope", "done")

# Trains until told to stop, and keeps one tensor of a MiB of every step.
SCRIPT = """
import sys, time, torch
from pathlib import Path
folder = Path(sys.argv[1])

def main():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    kept = []
    for step in range(2000):
        loss = model(torch.ones(32, 64)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append(torch.zeros(512, 512))
        if step >= 20 and (folder / "stop").exists():
            break
        time.sleep(0.005)

main()
"""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


def test_tensors_appended_to_a_list_are_found_with_line_and_list(api: Api, tmp_path: Path) -> None:
    result = explained(api, tmp_path, SCRIPT)
    assert result["complete"], result["notes"]
    group = result["groups"][0]
    line = SCRIPT.splitlines().index("        kept.append(torch.zeros(512, 512))") + 1
    top = group["stack"][0]
    assert (Path(top["file"]).name, top["line"], top["function"]) == ("train.py", line, "main")
    looks = group["counts_at_looks"]
    assert group["count"] == looks[-1] - looks[0]
    assert group["bytes"] == group["count"] * MIB
    assert len(result["steps"]) == len(result["live_bytes_at_looks"]) == 4
    assert group["tensors"] == ["float32[512, 512]"]
    (holder,) = group["holders"]
    assert (holder["kind"], holder["is_growing"]) == ("local", True)
    assert holder["chain"][0] == "kept"
    assert holder["chain"][1].startswith("list of ")
    assert holder["frame"]["function"] == "main"


def explained(api: Api, folder: Path, source: str) -> dict[str, Any]:
    """Run a job, ask it what grows, and end it."""
    script = folder / "train.py"
    script.write_text(source)
    options = ("--emulate", "--capacity", "4GiB")
    command = watched_command(
        script, str(folder), url=api.url, token=api.token, run="r", options=options
    )
    job = start(command)
    api.wait_for_run("r", lambda run: run["ranks"][0]["steps_received"] > 5, "steps")
    answer = api.command("r", "explain_growth")
    if answer["state"] != "done":  # a question at a time, and none until the last one is paid for
        answer = asked_by_the_server(api)
    (folder / "stop").touch()
    code, _, errors = finish(job)
    assert code == 0, errors
    receipt = answer["receipts"]["0"]
    assert receipt["state"] == "done", receipt["message"]
    result: dict[str, Any] = receipt["result"]
    return result


def asked_by_the_server(api: Api) -> dict[str, Any]:
    """The answer to the question that the server has asked by itself, sooner than the test."""
    path = "/api/v1/runs/r/commands"
    asked = wait_until(
        lambda: [
            each
            for each in api.get(path)["commands"]
            if (each["name"], each["issued_by"], each["state"]) == ASKED_AND_ANSWERED
        ],
        lambda found: len(found) > 0,
        "the answer to the server's question",
        timeout_s=60,
    )
    answer: dict[str, Any] = asked[0]
    return answer
