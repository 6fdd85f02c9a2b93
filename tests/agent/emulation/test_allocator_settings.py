from __future__ import annotations

from typing import Any

import pytest

from vramscope.notices import Notices

pytest.importorskip("torch")

pytestmark = pytest.mark.torch

MIB = 1 << 20


def current(text: str = "", version: tuple[int, int] = (2, 11)) -> Any:
    from vramscope.emulation.allocator_settings import CurrentSettings

    return CurrentSettings(version, text)


def from_environment(version: tuple[int, int] = (2, 11), cuda: str = "", both: str = "") -> Any:
    from vramscope.emulation.allocator_settings import settings_from_environment

    environ = {"PYTORCH_CUDA_ALLOC_CONF": cuda, "PYTORCH_ALLOC_CONF": both}
    return settings_from_environment(environ, version, Notices())


def test_without_variables_all_options_have_their_defaults() -> None:
    from vramscope_analysis.allocator import AllocatorSettings

    settings = from_environment()

    assert settings.values == AllocatorSettings()
    assert settings.text == ""


def test_the_first_variable_wins_and_the_second_counts_from_2_10_on() -> None:
    cuda, both = "max_split_size_mb:64", "expandable_segments:True"

    assert from_environment(cuda=cuda, both=both).values.max_split_size_bytes == 64 * MIB
    assert from_environment(cuda=cuda, both=both).text == cuda
    assert from_environment((2, 10), both=both).values.expandable_segments
    assert not from_environment((2, 9), both=both).values.expandable_segments


def test_what_is_not_understood_gives_one_line_and_the_defaults(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = from_environment(cuda="max_split_size_mb:many")

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("vramscope: PYTORCH_CUDA_ALLOC_CONF is not understood (")
    assert line.endswith("); the emulated device has default settings")
    assert settings.values == current().values
    assert settings.text == ""


def test_a_change_sets_some_options_back_and_keeps_others() -> None:
    settings = current(
        "expandable_segments:True,max_split_size_mb:64,garbage_collection_threshold:0.5,"
        "roundup_power2_divisions:4"
    )
    settings.change("max_split_size_mb:128")

    defaults = current().values
    assert settings.values.expandable_segments
    assert settings.values.max_split_size_bytes == 128 * MIB
    assert settings.values.garbage_collection_threshold == 0.0
    assert settings.values.roundup_power2_divisions == defaults.roundup_power2_divisions
    assert settings.text == "max_split_size_mb:128"


@pytest.mark.parametrize(("version", "error"), [((2, 9), RuntimeError), ((2, 10), ValueError)])
def test_a_wrong_change_raises_as_the_release_does_and_counts_up_to_there(
    version: tuple[int, int], error: type[Exception]
) -> None:
    settings = current("max_split_size_mb:64", version)

    with pytest.raises(error, match="parrots"):
        settings.change("max_split_size_mb:128,parrots:3,expandable_segments:True")

    assert settings.values.max_split_size_bytes == 128 * MIB
    assert not settings.values.expandable_segments
    assert settings.text == "max_split_size_mb:128,parrots:3,expandable_segments:True"


def test_options_are_those_of_the_release() -> None:
    with pytest.raises(ValueError, match=r"an option of torch 2\.9"):
        current("per_process_memory_fraction:0.5", (2, 9))


def test_a_snapshot_has_the_options_by_their_names() -> None:
    plain = current("expandable_segments:True").plain()

    assert plain["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert plain["expandable_segments"] is True


def test_commands_set_the_model_through_its_control() -> None:
    from vramscope.emulation.allocator_settings import EmulatedControl

    settings = current("max_split_size_mb:64")

    class Device:
        memory_fraction = 1.0

        def change_settings(self, text: str) -> None:
            settings.change(text)

        def set_memory_fraction(self, fraction: float) -> None:
            self.memory_fraction = fraction

    control = EmulatedControl(Device(), settings, (2, 11))
    assert (control.release, control.why_not()) == ((2, 11), None)
    control.send("expandable_segments:True")
    assert control.reported()["expandable_segments"] is True
    assert control.reported()["max_split_size"] == -1  # as in PyTorch: it was not named again
    with pytest.raises(ValueError, match="max_split_size_mb"):
        control.send("max_split_size_mb:1")
    control.set_fraction(0.5)
    assert control.fraction() == 0.5
