"""A long run: what the agent holds levels off, whether its server takes everything or nothing.

Counted by where memory was allocated (``tracemalloc``), so that it is the agent's own: the job's
memory, and what the interpreter keeps for itself, is neither excused nor blamed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.fake_server import FakeServer
from tests.support.job_process import finish, foreign_lines, start, watched_command
from tests.support.same_job import write_script

STEPS = 20_000
OUTBOX_BYTES = 512 << 10
MOST_BESIDE_QUEUE_BYTES = 1 << 20
SLACK_BYTES = 64 << 10

# In two halves: what the second adds to the first would be added by every one that follows.
SCRIPT = """
import gc, json, os, time, tracemalloc
import vramscope
from vramscope.oom import recent_rows
from vramscope.outbox.outbox import Outbox

OURS = [tracemalloc.Filter(True, f"*{os.sep}{name}{os.sep}*") for name in
        ("vramscope", "vramscope_protocol", "websockets")]
LOOKS = 6
# The last minute of rows is kept, unless that is too much: so much is there within seconds.
recent_rows.MAX_KEPT_BYTES = 16 << 10
[outbox] = [one for one in gc.get_objects() if type(one) is Outbox]

def bytes_beside_queue():
    # The queue has its bound, and is nearly full at one time and just spilled at another.
    gc.collect()
    while True:
        queued_bytes = outbox.memory_bytes
        snapshot = tracemalloc.take_snapshot()
        if outbox.memory_bytes == queued_bytes:
            found = snapshot.filter_traces(OURS)
            return sum(one.size for one in found.statistics("filename")) - queued_bytes

def held_at_rest():
    # What is on its way comes and goes by megabytes; the least of some looks is what stays.
    sizes = []
    for _ in range(LOOKS):
        # The newest batch is kept however large it is: after this it is a small one.
        vramscope.step()
        time.sleep(0.3)
        sizes.append(bytes_beside_queue())
    return min(sizes)

tracemalloc.start()
sizes = []
for part in range(4):
    for number in range({steps} // 4 - LOOKS):
        vramscope.log(loss=0.5)
        vramscope.step()
    sizes.append(held_at_rest())
print(json.dumps(sizes))
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("takes", ["everything", "nothing"])
def test_what_the_agent_holds_levels_off(takes: str, tmp_path: Path) -> None:
    script = write_script(tmp_path, SCRIPT, steps=STEPS)
    with FakeServer() as server:
        url = server.url
        if takes == "nothing":
            server.stop()
        command = watched_command(script, url=url, token=server.token, run="r")
        job = start(
            command,
            VRAMSCOPE_OUTBOX_BYTES=str(OUTBOX_BYTES),
            VRAMSCOPE_SPOOL_BYTES=str(1 << 20),
            VRAMSCOPE_SPOOL_DIR=str(tmp_path / "spool"),
            VRAMSCOPE_EXIT_TIMEOUT_S="20" if takes == "everything" else "1",
        )
        code, output, written = finish(job, timeout_s=200)
        assert code == 0, written
        assert foreign_lines(written) == []
        sizes = json.loads(output)
        if takes == "everything":
            rows = [row["step"] for row in server.rows("step")]
            assert len(rows) + sum(server.lost.steps.values()) == STEPS
            status = server.status
            assert status is not None
            assert status.guard_errors == 0
    first, *_, last = sizes[1:]
    assert last - first < SLACK_BYTES, sizes
    assert last < MOST_BESIDE_QUEUE_BYTES, sizes
