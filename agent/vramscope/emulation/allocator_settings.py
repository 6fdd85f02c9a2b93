"""The options of the emulated allocator: from the environment, and changed by the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from vramscope.notices import Notices
from vramscope_analysis.allocator import (
    AllocatorSettings,
    SettingsError,
    changed_settings,
    parse_settings,
    snapshot_settings,
)

_CUDA_VARIABLE: Final = "PYTORCH_CUDA_ALLOC_CONF"
_VARIABLE: Final = "PYTORCH_ALLOC_CONF"
_SINCE: Final = (2, 10)
"""The release that reads the second variable, and whose parser raises another error."""


class CurrentSettings:
    """The options in force, and the words that they came from.

    Args:
        version: torch release that is followed.
        text: as in ``PYTORCH_CUDA_ALLOC_CONF``.

    Raises:
        ValueError: the text is not understood.
    """

    def __init__(self, version: tuple[int, int], text: str = "") -> None:
        self._version = version
        self.text = text
        """What was set last."""
        self.values: AllocatorSettings = parse_settings(text, version=version)

    def change(self, text: str) -> None:
        """Follow ``_set_allocator_settings``; what stands before a wrong part counts, as there.

        Raises:
            ValueError: the text is not understood; ``RuntimeError`` where torch raises that.
        """
        self.text = text
        try:
            self.values = changed_settings(text, self.values, version=self._version)
        except SettingsError as error:
            self.values = error.applied
            if self._version < _SINCE:
                raise RuntimeError(str(error)) from None
            raise

    def plain(self) -> dict[str, Any]:
        """As a snapshot has them (``allocator_settings``)."""
        return snapshot_settings(self.values, self.text)


class SettableDevice(Protocol):
    """What is asked of an emulated device to change it."""

    memory_fraction: float

    def change_settings(self, text: str) -> None:
        """Follow ``_set_allocator_settings``."""
        ...

    def set_memory_fraction(self, fraction: float) -> None:
        """Cap what the job may have."""
        ...


class EmulatedControl:
    """Sets the model as the functions of torch do. Implements ``AllocatorControl``.

    Args:
        device: what is set.
        settings: its options.
        release: torch release that is followed.
    """

    def __init__(
        self, device: SettableDevice, settings: CurrentSettings, release: tuple[int, int]
    ) -> None:
        self._device = device
        self._settings = settings
        self.release = release
        """Whose rules hold."""

    def why_not(self) -> str | None:
        """Always ``None``: the model can be set at any time."""
        return None

    def reported(self) -> Mapping[str, Any]:
        """As a snapshot has them."""
        return self._settings.plain()

    def send(self, text: str) -> None:
        """Set what a text says; raises as torch does."""
        self._device.change_settings(text)

    def fraction(self) -> float | None:
        """What the job may have of the device."""
        return self._device.memory_fraction

    def set_fraction(self, fraction: float) -> None:
        """Cap what the job may have."""
        self._device.set_memory_fraction(fraction)


def settings_from_environment(
    environ: Mapping[str, str], version: tuple[int, int], notices: Notices
) -> CurrentSettings:
    """The options with which the job would start on a device.

    Where PyTorch would raise at the first use of the device, the defaults apply and one line
    says so: the job runs without a device.
    """
    variable = _CUDA_VARIABLE
    if not environ.get(variable) and version >= _SINCE:
        variable = _VARIABLE
    text = environ.get(variable, "")
    try:
        return CurrentSettings(version, text)
    except ValueError as error:
        notices.say(
            "allocator_settings",
            f"{variable} is not understood ({error}); the emulated device has default settings",
        )
        return CurrentSettings(version)
