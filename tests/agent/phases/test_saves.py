"""Every way of saving tensors is a checkpoint, on the thread that trains."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_clock import FakeClock
from vramscope.notices import Notices
from vramscope.phases.phases import Phases
from vramscope.phases.saves import Saves

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch")

CHECKPOINT = 2


class Probe:
    """Something that is saved, and sees in which phase."""

    phases: Phases | None = None
    seen: list[int]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        assert Probe.phases is not None
        Probe.seen.append(Probe.phases.code())
        return dict, ()


class Rig:
    """Saves with phases; the calling thread trains."""

    def __init__(self) -> None:
        self.phases = Phases(FakeClock(), lambda event: None, Notices())
        self.saves_begun = 0
        self.thread = threading.get_ident()
        self.saves = Saves(self.phases, lambda: threading.get_ident() == self.thread, self._on_save)
        Probe.phases, Probe.seen = self.phases, []

    def _on_save(self) -> None:
        self.saves_begun += 1

    def codes(self) -> list[int]:
        seen, Probe.seen = Probe.seen, []
        return seen


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    rig.saves.poll()
    yield rig
    rig.saves.remove()


@pytest.mark.parametrize("is_zip", [True, False])
def test_torch_save_is_a_checkpoint_as_long_as_it_takes(rig: Rig, is_zip: bool) -> None:
    torch.save(Probe(), io.BytesIO(), _use_new_zipfile_serialization=is_zip)
    assert rig.codes() == [CHECKPOINT]
    assert rig.phases.code() != CHECKPOINT
    assert rig.saves_begun == 1


def test_a_save_that_fails_ends_too_and_fails_as_before(rig: Rig) -> None:
    with pytest.raises((pickle.PicklingError, AttributeError)):
        torch.save(lambda: None, io.BytesIO())
    assert rig.phases.code() != CHECKPOINT


def test_what_is_saved_can_be_loaded(rig: Rig, tmp_path: Path) -> None:
    torch.save({"weight": torch.arange(3)}, tmp_path / "model.pt")
    assert torch.load(tmp_path / "model.pt")["weight"].tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")
def test_a_distributed_checkpoint_is_one_too(rig: Rig, tmp_path: Path) -> None:
    checkpoint: Any = pytest.importorskip("torch.distributed.checkpoint")
    rig.saves.poll()

    class Stateful:
        def state_dict(self) -> dict[str, Any]:
            Probe.seen.append(rig.phases.code())
            return {"weight": torch.ones(1)}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            raise AssertionError("nothing is loaded")

    class Writer(checkpoint.FileSystemWriter):  # type: ignore[misc]  # torch is untyped here
        def write_data(self, *arguments: Any) -> Any:
            Probe.seen.append(rig.phases.code())
            return super().write_data(*arguments)

    checkpoint.save({"model": Stateful()}, storage_writer=Writer(tmp_path / "step"), no_dist=True)
    assert rig.codes()[-1] == CHECKPOINT
    assert rig.phases.code() != CHECKPOINT


def test_safetensors_is_one_too(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    safetensors: Any = pytest.importorskip("safetensors.torch")
    save_file = safetensors.save_file  # as transformers imports it: before we came
    rig.saves.remove()
    original = safetensors.serialize_file

    def serialize_file(*arguments: Any, **options: Any) -> Any:
        Probe.seen.append(rig.phases.code())
        return original(*arguments, **options)

    monkeypatch.setattr(safetensors, "serialize_file", serialize_file)
    saves = Saves(rig.phases, lambda: True, lambda: None)
    saves.poll()
    try:
        save_file({"weight": torch.arange(3)}, tmp_path / "model.safetensors")
    finally:
        saves.remove()
    assert rig.codes() == [CHECKPOINT]
    assert safetensors.load_file(tmp_path / "model.safetensors")["weight"].tolist() == [0, 1, 2]


def test_a_save_beside_training_is_no_phase(rig: Rig) -> None:
    thread = threading.Thread(target=lambda: torch.save(Probe(), io.BytesIO()))
    thread.start()
    thread.join(10)
    assert rig.codes()[0] != CHECKPOINT
    assert rig.saves_begun == 0


def test_in_a_phase_that_is_told_the_telling_counts(rig: Rig) -> None:
    told = rig.phases.begin("export", "user")
    torch.save(Probe(), io.BytesIO())
    assert rig.codes() == [told.code]


def test_removed_it_leaves_everything_as_it_was() -> None:
    import torch.serialization

    before = (torch.serialization._save, torch.serialization._legacy_save, torch.save)
    rig = Rig()
    rig.saves.poll()
    assert torch.serialization._save is not before[0]
    assert torch.save is before[2], "a public function may be held by anybody"
    rig.saves.remove()
    assert (torch.serialization._save, torch.serialization._legacy_save, torch.save) == before


def test_in_a_forked_child_nothing_is_watched(rig: Rig) -> None:
    rig.saves.forget_after_fork()
    torch.save(Probe(), io.BytesIO())
    assert rig.codes()[0] != CHECKPOINT
