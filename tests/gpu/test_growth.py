"""On a real GPU: what grows is found by its line and its holder, and costs little."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_process import Api, finish, start, watched_command
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(400)]

MIB = 1 << 20

HEAD = """
import sys, time, torch
from pathlib import Path
folder = Path(sys.argv[1])
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).cuda()
optimizer = torch.optim.Adam(model.parameters())
def train():
    loss = model(torch.ones(256, 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.02)
def steps():
    step = 0
    while step < 30 or not (folder / "stop").exists():
        yield step
        step += 1
"""

LIST = (
    HEAD
    + """
def main():
    kept = []
    for _ in steps():
        kept.append(torch.zeros(512, 512, device="cuda"))
        train()
    assert not torch._C._cuda_isHistoryEnabled()
main()
"""
)

GARBAGE = (
    HEAD
    + """
import gc
gc.disable()
class Cycle:
    pass
def main():
    for _ in steps():
        node = Cycle()
        node.t = torch.zeros(512, 512, device="cuda")
        node.me = node
        train()
main()
"""
)

GRAPH = (
    HEAD
    + """
def main():
    total = torch.zeros((), device="cuda")
    feats = torch.ones(512, 512, device="cuda", requires_grad=True)
    for _ in steps():
        train()
        total = total + 0 * feats.sigmoid().mean()
main()
"""
)

BACKWARD = (
    HEAD
    + """
def main():
    old = []
    for _ in steps():
        layer = torch.nn.Linear(512, 512, bias=False).cuda()
        layer(torch.ones(8, 512, device="cuda")).sum().backward()
        old.append(layer)
        train()
main()
"""
)

CAPTURED = (
    HEAD
    + """
def main():
    kept = []
    x = torch.ones(256, 1024, device="cuda")
    for step in steps():
        kept.append(torch.zeros(512, 512, device="cuda"))
        train()
        if step % 10 == 5:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = x * 2
            graph.replay()
            del graph, y
main()
"""
)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    with ServerProcess(tmp_path) as server:
        yield Api(server.url, server.token)


def explained(api: Api, folder: Path, source: str) -> dict[str, Any]:
    """Run a job, ask it what grows, and end it."""
    script = folder / "train.py"
    script.write_text(source)
    job = start(watched_command(script, str(folder), url=api.url, token=api.token, run="r"))
    try:
        api.wait_for_run("r", lambda run: run["ranks"][0]["steps_received"] > 10, "steps", 120)
        answer = api.command("r", "explain_growth", deadline_s=60)
    finally:
        (folder / "stop").touch()
    code, _, errors = finish(job)
    assert code == 0, errors
    receipt = answer["receipts"]["0"]
    assert receipt["state"] == "done", receipt["message"]
    print(receipt["message"], receipt["result"]["added_us_per_step"], "us a step")
    report: dict[str, Any] = receipt["result"]
    return report


def line_of(source: str, text: str) -> int:
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)


def test_a_list_with_its_line_within_the_budget(api: Api, tmp_path: Path) -> None:
    report = explained(api, tmp_path, LIST)
    group = report["groups"][0]
    users = [frame for frame in group["stack"] if frame["file"].endswith("train.py")]
    assert users[0]["line"] == line_of(LIST, "kept.append")
    assert group["bytes"] == group["count"] * MIB
    holder = group["holders"][0]
    assert (holder["kind"], holder["is_growing"], holder["chain"][0]) == ("local", True, "kept")
    assert holder["stored_at"]["line"] == line_of(LIST, "kept.append")
    # Of steps of 20 ms and more.
    assert report["added_us_per_step"] < 1000


def test_garbage_is_told_as_such(api: Api, tmp_path: Path) -> None:
    report = explained(api, tmp_path, GARBAGE)
    holder = report["groups"][0]["holders"][0]
    assert holder["kind"] == "garbage"
    assert holder["chain"][:2] == ["Cycle", "Cycle.me"]
    assert report["garbage"]["bytes"] > 0


def test_a_graph_that_gets_longer(api: Api, tmp_path: Path) -> None:
    report = explained(api, tmp_path, GRAPH)
    holders = [holder for group in report["groups"] for holder in group["holders"]]
    graphs = [holder for holder in holders if holder["kind"] == "autograd_graph"]
    assert graphs[0]["chain"][0] == "total"
    assert graphs[0]["stored_at"]["line"] == line_of(GRAPH, "total = total")


def test_what_a_backward_pass_allocates_has_no_lines_and_a_holder(api: Api, tmp_path: Path) -> None:
    report = explained(api, tmp_path, BACKWARD)
    backward = next(group for group in report["groups"] if group["in_backward"])
    assert backward["stack"] == []
    assert backward["holders"][0]["chain"][0] == "old"
    assert backward["holders"][0]["chain"][-1] == ".grad"


def test_captures_of_graphs_go_on_meanwhile(api: Api, tmp_path: Path) -> None:
    report = explained(api, tmp_path, CAPTURED)
    assert report["groups"][0]["holders"][0]["chain"][0] == "kept"
