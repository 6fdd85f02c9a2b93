"""The command about how often the agent looks: ``set_sampling_rate``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from vramscope.commands.call import Call, Handler
from vramscope_protocol.commands import Receipt

MIN_RATE_HZ: Final = 0.1


class Rated(Protocol):
    """What samples at a rate: see ``Sampler``."""

    @property
    def rates_hz(self) -> tuple[float, float]:
        """The rate that is wanted, and the one that the cost budget allows now."""
        ...

    def set_rate_hz(self, rate_hz: float) -> None:
        """Wish for another rate."""
        ...


def sampling_handlers(sampler: Callable[[], Rated]) -> dict[str, Handler]:
    """The commands about sampling, by name."""

    def set_rate(call: Call) -> Receipt:
        rated = sampler()
        before = _state(rated)
        rate_hz: float = call.params.rate_hz
        if rate_hz < MIN_RATE_HZ:
            text = f"expected a rate of at least {MIN_RATE_HZ:g} Hz, got {rate_hz:g}"
            return Receipt("refused", before=before, message=f"{text}. Nothing was changed.")
        rated.set_rate_hz(rate_hz)
        after = _state(rated)
        text = f"Samples are wanted {after['wanted_rate_hz']:g} times a second"
        if after["rate_hz"] < after["wanted_rate_hz"]:
            text += f"; it begins with {after['rate_hz']:.3g}, and rises as the cost budget allows"
        return Receipt("done", before=before, after=after, message=f"{text}.")

    return {"set_sampling_rate": set_rate}


def _state(rated: Rated) -> dict[str, float]:
    wanted_hz, rate_hz = rated.rates_hz
    return {"wanted_rate_hz": wanted_hz, "rate_hz": rate_hz}
