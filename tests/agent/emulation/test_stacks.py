from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.torch


def frames_of(stack: Any) -> list[dict[str, Any]]:
    from vramscope.emulation.stacks import FrameLists

    return FrameLists().frames(stack)


def test_frames_are_named_innermost_first_with_the_line_that_runs() -> None:
    from vramscope.emulation.stacks import Stacks

    stacks = Stacks()

    def inner() -> Any:
        return (
            stacks.gather()  # this line, not that of the statement
        )

    def outer() -> Any:
        return inner()

    stack = outer()
    frames = frames_of(stack)

    assert [frame["name"] for frame in frames[:3]] == [
        "inner",
        "outer",
        sys._getframe().f_code.co_name,
    ]
    assert {frame["filename"] for frame in frames[:3]} == {__file__}
    first_line = inner.__code__.co_firstlineno
    assert [frames[0]["line"], frames[1]["line"]] == [first_line + 2, first_line + 6]
    assert set(frames[0]) == {"name", "filename", "line"}


def test_equal_stacks_are_one_object_and_others_are_not() -> None:
    from vramscope.emulation.stacks import Stacks

    stacks = Stacks()
    here = [stacks.gather() for _ in range(3)]
    elsewhere = stacks.gather()

    assert here[0] is here[1] is here[2]
    assert elsewhere is not here[0]
    assert frames_of(elsewhere)[0]["line"] != frames_of(here[0])[0]["line"]


def test_code_that_is_gone_does_not_lend_its_stack_to_other_code() -> None:
    from vramscope.emulation.stacks import Stacks

    stacks = Stacks()
    names: list[str] = []
    for number in range(200):
        space: dict[str, Callable[[Any], Any]] = {}
        exec(f"def made_{number}(gather):\n    return gather()", space)
        names.append(frames_of(space[f"made_{number}"](stacks.gather))[0]["name"])

    assert names == [f"made_{number}" for number in range(200)]


def test_no_more_stacks_are_remembered_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    from vramscope.emulation import stacks as module

    monkeypatch.setattr(module, "MAX_KNOWN", 10)
    stacks = module.Stacks()
    kept = []
    for number in range(25):
        space: dict[str, Callable[[Any], Any]] = {}
        exec(f"def made_{number}(gather):\n    return gather()", space)
        kept.append(space[f"made_{number}"](stacks.gather))
        assert len(stacks._known) <= 10

    assert [frames_of(each)[0]["name"] for each in kept] == [f"made_{n}" for n in range(25)]


def test_our_own_frames_and_the_launcher_are_left_out() -> None:
    from vramscope.emulation import stacks as module
    from vramscope.launch import Program

    found: list[Any] = []
    stacks = module.Stacks()

    def job() -> None:
        found.append(stacks.gather())

    # A function of ours between the job's frames, and the launcher below them.
    own = compile("def through(call):\n    return call()", module.__file__, "exec")
    space: dict[str, Any] = {}
    exec(own, space)

    class Jobs(Program):
        def _prepare_script(self) -> Any:
            main: Any = type(sys)("__main__")
            main.job, main.through = job, space["through"]
            return main, lambda: compile("through(job)", "train.py", "exec")

    main = sys.modules["__main__"]
    try:
        Jobs("train.py", []).run(lambda error: None)
    finally:
        sys.modules["__main__"] = main

    assert [(f["name"], os.path.basename(f["filename"])) for f in frames_of(found[0])] == [
        ("job", "test_stacks.py"),
        ("<module>", "train.py"),
    ]


def test_the_demo_is_a_job_as_any_other() -> None:
    import vramscope
    from vramscope.emulation.stacks import is_own_file

    folder = os.path.dirname(str(vramscope.__file__))
    assert is_own_file(os.path.join(folder, "observer.py"))
    assert not is_own_file(os.path.join(folder, "demo", "train.py"))
    assert not is_own_file(os.path.join(folder + "_of_mine", "train.py"))


def test_stacks_of_other_threads_are_their_own() -> None:
    from vramscope.emulation.stacks import Stacks

    stacks = Stacks()
    found: list[Any] = []

    def on_thread() -> None:
        found.append(stacks.gather())

    thread = threading.Thread(target=on_thread)
    thread.start()
    thread.join()

    names = [frame["name"] for frame in frames_of(found[0])]
    assert names[0] == "on_thread"
    assert sys._getframe().f_code.co_name not in names
