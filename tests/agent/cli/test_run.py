from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_server import FakeServer
from vramscope.cli.agent_options import add_agent_options
from vramscope.cli.problem import Problem
from vramscope.cli.run import execute, split_arguments
from vramscope_protocol.messages import Register


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as server:
        yield server


@pytest.mark.parametrize(
    ("words", "options", "name", "arguments"),
    [
        (["t.py"], [], "t.py", []),
        (["t.py", "--url", "x"], [], "t.py", ["--url", "x"]),
        (["--url", "u", "t.py", "a"], ["--url", "u"], "t.py", ["a"]),
        (["--url=u", "--emulate", "t.py"], ["--url=u", "--emulate"], "t.py", []),
        (["--emulate", "--", "t.py", "--", "b"], ["--emulate"], "t.py", ["--", "b"]),
        (["-m", "pkg", "-m", "x"], [], "pkg", ["-m", "x"]),
        (["--run", "r", "-m", "pkg"], ["--run", "r"], "pkg", []),
        (["--", "-m", "pkg", "--flag"], [], "pkg", ["--flag"]),
        (["--no-local-server", "t.py"], ["--no-local-server"], "t.py", []),
        (["--no-peaks", "--", "t.py"], ["--no-peaks"], "t.py", []),
    ],
)
def test_our_options_end_where_the_program_begins(
    words: list[str], options: list[str], name: str, arguments: list[str]
) -> None:
    ours, program = split_arguments(words)
    assert ours == options
    assert program is not None
    assert (program.name, program._arguments) == (name, arguments)


def test_it_knows_every_option_without_a_value() -> None:
    parser = argparse.ArgumentParser()
    add_agent_options(parser)
    flags = {
        word for action in parser._actions if action.nargs == 0 for word in action.option_strings
    }
    assert "--no-explain-growth" in flags
    for flag in flags:
        ours, program = split_arguments([flag, "t.py"])
        assert (ours, program and program.name) == ([flag], "t.py")


def run(server: FakeServer, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vramscope", "run", "--url", server.url]
    return subprocess.run(
        [*command, "--token", server.token, *words],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_script_runs_and_its_end_is_known(server: FakeServer, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sys\nprint(sys.argv[1:])\nsys.exit(int(sys.argv[2]))\n")
    done = run(server, "--run", "a run", str(script), "--lr", "3")
    assert (done.returncode, done.stdout) == (3, "['--lr', '3']\n")
    goodbye = server.goodbye
    assert goodbye is not None
    assert (goodbye.reason, goodbye.exit_code) == ("exit", 3)
    (register,) = server.of_type(Register)
    assert (register.run.name, register.run.script) == ("a run", "train.py")


def test_an_exception_is_the_scripts_own_and_is_told(server: FakeServer, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("def f():\n    raise ValueError('no such thing')\nf()\n")
    done = run(server, str(script))
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    theirs = [line for line in lines if not line.startswith("vramscope: ")]
    assert theirs[0] == "Traceback (most recent call last):"
    assert theirs[-1] == "ValueError: no such thing"
    assert not any("vramscope" in line for line in theirs)
    goodbye = server.goodbye
    assert goodbye is not None
    assert (goodbye.reason, goodbye.exit_code) == ("exception", 1)
    assert goodbye.text == "ValueError: no such thing"


def test_attach_in_the_script_is_the_session_of_the_launcher(
    server: FakeServer, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import vramscope\n"
        "session = vramscope.attach(run='another name')\n"
        "print(session.run_name, session is vramscope.attach())\n"
        "vramscope.step()\n"
    )
    done = run(server, "--run", "the name", str(script))
    assert done.stdout == "the name True\n"
    assert len(server.of_type(Register)) == 1
    assert [row["step"] for row in server.rows("step")] == [1]


def test_ranks_of_one_launch_are_one_run(server: FakeServer, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    for rank in ("0", "1"):
        run(
            server,
            str(script),
            RANK=rank,
            WORLD_SIZE="2",
            LOCAL_RANK=rank,
            MASTER_ADDR="here",
            MASTER_PORT="1",
        )
    registers = server.of_type(Register)
    # A process may register again, when it knows its device better.
    assert {register.rank.rank for register in registers} == {0, 1}
    assert len({register.run.id for register in registers}) == 1
    assert {register.run.world_size for register in registers} == {2}


def test_a_module_that_does_not_exist_is_said_in_one_line(server: FakeServer) -> None:
    done = run(server, "-m", "no_such_module")
    assert done.returncode == 1
    assert "vramscope: no module named 'no_such_module' that can be run\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_launcher_is_run_and_watched_is_what_it_starts(
    server: FakeServer, tmp_path: Path
) -> None:
    # Stands for torchrun: found by its name, and tells what its children would find.
    launcher = tmp_path / "torchrun"
    launcher.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\nfrom vramscope import current\n"
        "from vramscope.identity.inheritance import inherited\n"
        "left = inherited()\n"
        "print(sys.argv[1:], current.session(), os.environ['VRAMSCOPE_ATTACH'])\n"
        "print(left.config.token, left.config.run, repr(left.key))\n"
    )
    launcher.chmod(0o755)
    done = run(server, "--run", "the run", str(launcher), "--nproc", "2", "train.py")
    if done.returncode == 2:
        assert "not installed here, only found" in done.stderr
        pytest.skip("vramscope is found here, but not installed")
    assert done.stdout == (f"['--nproc', '2', 'train.py'] None 1\n{server.token} the run ''\n")
    assert server.connections == 0


def test_a_launcher_whose_ranks_could_not_attach_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "torchrun").write_text("")
    monkeypatch.setattr("vramscope.cli.run.has_startup_file", lambda: False)
    with pytest.raises(Problem, match="the processes that torchrun starts would not be watched"):
        execute([str(tmp_path / "torchrun"), "train.py"])


def test_a_script_leaves_what_its_ranks_need_to_its_children(
    server: FakeServer, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import os\nfrom vramscope.identity.inheritance import inherited\n"
        "left = inherited()\n"
        "print(left.run_name, left.config.token, left.key.split(':')[0])\n"
        "print('VRAMSCOPE_ATTACH' in os.environ)\n"
    )
    done = run(server, str(script))
    assert done.stdout == f"train {server.token} process\nFalse\n"
