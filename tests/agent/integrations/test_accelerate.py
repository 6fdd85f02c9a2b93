"""The tracker in a real accelerate loop attaches, and passes on the numbers."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.support.told_session import ToldSession
from vramscope import current

pytestmark = [
    pytest.mark.torch,
    # Of its own making: accelerate and what it imports.
    pytest.mark.filterwarnings("ignore"),
]
torch: Any = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    accelerate: Any = pytest.importorskip("accelerate")


def an_accelerator(**options: Any) -> Any:
    from vramscope.integrations.accelerate import VramscopeTracker

    return accelerate.Accelerator(cpu=True, log_with=VramscopeTracker(**options))


def test_it_attaches_with_its_options_when_trackers_are_initialised(
    session: ToldSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    import vramscope.session

    opened: list[str] = []

    def open_session(**options: Any) -> ToldSession:
        opened.append(options["run"])
        return session

    monkeypatch.setattr(vramscope.session, "open_session", open_session)
    monkeypatch.setattr(current, "_session", None)
    accelerator = an_accelerator(run="unit")
    assert opened == []
    accelerator.init_trackers("project", config={"lr": 0.1, "password": "secret"})
    assert opened == ["unit"]
    assert accelerator.get_tracker("vramscope", unwrap=True) is session
    accelerator.end_training()


def test_numbers_are_passed_on_and_the_rest_is_not(session: ToldSession) -> None:
    accelerator = an_accelerator()
    accelerator.init_trackers("project", config={"password": "secret"})
    accelerator.log({"loss": 0.5, "epoch": 1, "note": "text", "none": None}, step=17)
    accelerator.log({"accuracy": torch.tensor(0.25), "many": torch.ones(2)})
    accelerator.end_training()
    assert session.calls == [
        {"loss": 0.5, "epoch": 1},
        {"accuracy": torch.tensor(0.25)},
    ]


def test_every_process_is_attached_not_only_the_main_one() -> None:
    from vramscope.integrations.accelerate import VramscopeTracker

    assert VramscopeTracker.main_process_only is False


@pytest.mark.expects_guarded_errors
def test_an_error_of_ours_does_not_reach_the_loop(
    session: ToldSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(session, "log", fail)
    accelerator = an_accelerator()
    accelerator.init_trackers("project")
    accelerator.log({"loss": 0.5})
    accelerator.end_training()
