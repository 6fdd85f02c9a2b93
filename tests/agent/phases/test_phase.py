"""``vramscope.phase``: with a session it tells, without one it does nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import vramscope
from vramscope import current


class RecordingSession:
    """Notes which phases were entered and left."""

    is_active = True

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.error: Exception | None = None

    def begin_phase(self, name: str, source: str) -> Callable[[], None]:
        if self.error is not None:
            raise self.error
        self.calls.append(f"{name} by {source}")
        return lambda: self.calls.append(f"end of {name}")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> RecordingSession:
    session = RecordingSession()
    monkeypatch.setattr(current, "_session", session)
    return session


def test_a_block_is_in_the_phase_also_when_it_raises(session: RecordingSession) -> None:
    def evaluate() -> None:
        with vramscope.phase("eval"):
            assert session.calls == ["eval by user"]
            raise KeyError

    with pytest.raises(KeyError):
        evaluate()
    assert session.calls == ["eval by user", "end of eval"]


def test_a_decorated_function_is_in_it_at_every_depth(session: RecordingSession) -> None:
    @vramscope.phase("eval")
    def count_down(number: int) -> int:
        return number and count_down(number - 1)

    assert count_down(2) == 0
    assert session.calls == ["eval by user"] * 3 + ["end of eval"] * 3


def test_begin_and_end_where_no_block_fits(session: RecordingSession) -> None:
    phase = vramscope.phase("warm-up")
    phase.begin()
    assert session.calls == ["warm-up by user"]
    phase.end()
    phase.end()
    assert session.calls == ["warm-up by user", "end of warm-up"]


def test_without_a_session_it_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "_session", None)
    with vramscope.phase("eval"):
        pass


def test_attached_in_the_middle_the_end_is_nothing(
    monkeypatch: pytest.MonkeyPatch, session: RecordingSession
) -> None:
    monkeypatch.setattr(current, "_session", None)
    phase = vramscope.phase("eval")
    phase.begin()
    monkeypatch.setattr(current, "_session", session)
    phase.end()
    assert session.calls == []


@pytest.mark.expects_guarded_errors
def test_an_error_of_ours_does_not_reach_the_job(session: RecordingSession) -> None:
    session.error = RuntimeError("ours")
    with vramscope.phase("eval"):
        pass


# PyTorch's own compiler imports what PyTorch itself has deprecated.
@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inside_a_compiled_function_it_works_and_changes_nothing(
    session: RecordingSession,
) -> None:
    import torch

    def double(tensor: Any) -> Any:
        with vramscope.phase("forward"):
            tensor = tensor * 2
        return tensor + 1

    compiled: Any = torch.compile(double, backend="eager")
    for _ in range(2):
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 3.0))
    assert session.calls == ["forward by user", "end of forward"] * 2
