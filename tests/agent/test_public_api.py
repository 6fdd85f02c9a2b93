from __future__ import annotations

import inspect
import subprocess
import sys

import vramscope

LIGHT_IMPORT = """
import sys, time
started = time.process_time()  # what others do meanwhile is not its fault
import vramscope
took = time.process_time() - started
heavy = {"torch", "numpy", "websockets", "msgspec", "pynvml", "fastapi", "asyncio", "socket"}
print(sorted(heavy & set(sys.modules)), took)
"""


def test_the_public_names_are_these() -> None:
    assert sorted(vramscope.__all__) == [
        "Stopped",
        "__version__",
        "attach",
        "batch_size",
        "command",
        "detach",
        "log",
        "phase",
        "should_stop",
        "step",
    ]
    assert str(inspect.signature(vramscope.should_stop)) == "() -> 'bool'"
    assert str(inspect.signature(vramscope.detach)) == "() -> 'None'"
    assert str(inspect.signature(vramscope.step)) == "() -> 'None'"
    assert str(inspect.signature(vramscope.log)) == "(**values: 'object') -> 'None'"
    assert str(inspect.signature(vramscope.phase)) == "(name: 'str') -> 'Phase'"
    parameters = inspect.signature(vramscope.attach).parameters
    assert list(parameters)[:3] == ["url", "token", "run"]
    assert all(parameter.default is None for parameter in parameters.values())


def test_every_option_can_be_given_to_attach() -> None:
    from vramscope.config import OPTIONS

    assert set(inspect.signature(vramscope.attach).parameters) == set(OPTIONS)


def test_importing_is_quick_and_loads_nothing_heavy() -> None:
    took_s: list[float] = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", LIGHT_IMPORT], capture_output=True, text=True, check=True
        )
        names, took = done.stdout.rsplit(" ", 1)
        assert names == "[]"
        took_s.append(float(took))
    assert min(took_s) < 0.03


def test_attaching_needs_no_torch_and_no_server_extra() -> None:
    # A None in sys.modules makes every import of that name fail.
    code = (
        "import sys\n"
        "for name in ('torch', 'numpy', 'fastapi', 'uvicorn', 'sqlalchemy', 'pynvml'):\n"
        "    sys.modules[name] = None\n"
        "import vramscope\n"
        "session = vramscope.attach('http://127.0.0.1:9', 't')\n"
        "vramscope.step(); vramscope.log(loss=1)\n"
        "with vramscope.phase('eval'): pass\n"
        "print(session.is_active)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=30
    )
    assert done.stdout == "True\n"
    assert [line for line in done.stderr.splitlines() if not line.startswith("vramscope: ")] == []
    assert done.returncode == 0
