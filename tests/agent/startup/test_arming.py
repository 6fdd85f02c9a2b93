from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.support.fake_server import FakeServer
from vramscope.config import load_config
from vramscope.identity.inheritance import VARIABLE, Inheritance
from vramscope.startup.arming import SWITCH, Sign, sign_to_wait_for
from vramscope_protocol.messages import Register

SPAWNED = ["-c", "from multiprocessing.spawn import spawn_main; spawn_main()", "-"]


@pytest.mark.parametrize(
    ("words", "switch", "expected"),
    [
        (["train.py"], "1", "torch"),
        (["-m", "pkg.train"], "yes", "torch"),
        (["-c", "import torch"], "1", "optimizer"),
        ([], "1", "optimizer"),
        (SPAWNED, "1", "group"),
        (["torchrun", "train.py"], "1", None),
        (["-m", "vramscope", "run", "train.py"], "1", None),
        # Started by a watched process: only ranks of its job are watched as well.
        (["helper.py"], None, "group"),
        (["helper.py"], "0", "group"),
        (SPAWNED, None, "group"),
        (["-m", "pip"], None, None),
    ],
)
def test_a_process_waits_for_what_shows_that_it_trains(
    words: list[str], switch: str | None, expected: Sign | None
) -> None:
    environ = {} if switch is None else {SWITCH: switch}
    assert sign_to_wait_for(["python", *words], environ) == expected


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


# Modules that stand for torch, as far as this is about: quick to import.
TORCH = {
    "torch/__init__.py": "",
    "torch/optim/__init__.py": "",
    "torch/optim/optimizer.py": (
        "class Optimizer:\n"
        "    def __init__(self, lr): self.lr = lr\n"
        "def register_optimizer_step_post_hook(hook):\n"
        "    class Handle:\n"
        "        def remove(self): pass\n"
        "    return Handle()\n"
    ),
    "torch/distributed/__init__.py": (
        "from torch.distributed import distributed_c10d\n"
        "class PrefixStore: pass\n"
        "def is_available(): return True\n"
        "def is_initialized(): return distributed_c10d.group is not None\n"
        "def get_rank(): return 1\n"
        "def get_world_size(): return 4\n"
    ),
    "torch/distributed/distributed_c10d.py": (
        "group = None\n"
        "def _update_default_pg(new):\n"
        "    global group\n"
        "    group = new\n"
        "def init_process_group(): _update_default_pg(1)\n"
    ),
}
SHOW = """
from vramscope import current
def show():
    session = current.session()
    print(session is not None and session.is_active)
"""


def run(
    server: FakeServer, tmp_path: Path, code: str, arguments: list[str], **extra: str
) -> list[str]:
    """Run code in a process that was armed as if it had that command line; what it printed."""
    for name, text in TORCH.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    # Not in the environment of the start: an installed vramscope would arm itself.
    arm = (
        f"import os\nos.environ.update({extra!r})\n"
        f"from vramscope.startup import arm\narm(['python', *{arguments!r}])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{arm}{SHOW}{code}"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
            "VRAMSCOPE_URL": server.url,
            "VRAMSCOPE_TOKEN": server.token,
            "VRAMSCOPE_SPOOL_DIR": str(tmp_path / "spool"),
            "VRAMSCOPE_EXIT_TIMEOUT_S": "20",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_script_is_attached_when_torch_is_there(server: FakeServer, tmp_path: Path) -> None:
    shown = run(server, tmp_path, "show()\nimport torch\nshow()", ["t.py"], VRAMSCOPE_ATTACH="1")
    assert shown == ["False", "True"]
    assert len({register.stream for register in server.of_type(Register)}) == 1


def test_a_command_is_attached_when_it_makes_an_optimizer(
    server: FakeServer, tmp_path: Path
) -> None:
    code = (
        "import torch.optim.optimizer as o\nshow()\n"
        "before = o.Optimizer.__init__\n"
        "class Sgd(o.Optimizer):\n    def __init__(self): super().__init__(lr=3)\n"
        "print(Sgd().lr)\nshow()\nprint(o.Optimizer.__init__ is before.__wrapped__)\n"
    )
    shown = run(server, tmp_path, code, ["-c", code], VRAMSCOPE_ATTACH="1")
    assert shown == ["False", "3", "True", "True"]


def test_a_child_of_a_watched_process_is_attached_when_it_is_a_rank(
    server: FakeServer, tmp_path: Path
) -> None:
    # The options of the parent, which are in no variable of their own.
    config = load_config({}, url=server.url, token=server.token, spool_dir=str(tmp_path / "s"))
    left = msgspec.json.encode(Inheritance(config, "the name", "the key")).decode()
    code = (
        "import torch, torch.distributed as dist\n"
        "show()\ndist.distributed_c10d.init_process_group()\nshow()\n"
    )
    environ = {VARIABLE: left, "VRAMSCOPE_URL": "", "VRAMSCOPE_TOKEN": ""}
    assert run(server, tmp_path, code, SPAWNED, **environ) == ["False", "True"]
    registers = server.of_type(Register)
    # A slow one registers again when it knows what it uses.
    assert len({register.stream for register in registers}) == 1
    assert {(r.rank.rank, r.run.world_size) for r in registers} == {(1, 4)}


def test_a_job_that_attaches_itself_is_attached_once(server: FakeServer, tmp_path: Path) -> None:
    code = (
        "import vramscope\nsession = vramscope.attach(run='own')\nimport torch\n"
        "print(session is current.session())\n"
    )
    assert run(server, tmp_path, code, ["t.py"], VRAMSCOPE_ATTACH="1") == ["True"]
    assert {register.run.name for register in server.of_type(Register)} == {"own"}
