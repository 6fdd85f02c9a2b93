"""Another rate is wished for, and the receipt tells what the budget makes of it."""

from __future__ import annotations

from vramscope.commands.call import Call
from vramscope.commands.sampling import sampling_handlers
from vramscope.sampling.cost_budget import CostBudget
from vramscope_protocol.commands import Receipt
from vramscope_protocol.parameters import SamplingRateParams


class Sampler:
    def __init__(self) -> None:
        self.budget = CostBudget(10.0, 0.005)

    @property
    def rates_hz(self) -> tuple[float, float]:
        return self.budget.wanted_rate_hz, self.budget.rate_hz

    def set_rate_hz(self, rate_hz: float) -> None:
        self.budget.set_wanted_rate_hz(rate_hz)


def run(sampler: Sampler, rate_hz: float) -> Receipt:
    call = Call(SamplingRateParams(rate_hz))
    receipt = sampling_handlers(lambda: sampler)["set_sampling_rate"](call)
    assert isinstance(receipt, Receipt)
    return receipt


def test_a_lower_rate_holds_at_once() -> None:
    receipt = run(Sampler(), 2)
    assert receipt.before == {"wanted_rate_hz": 10, "rate_hz": 10}
    assert receipt.after == {"wanted_rate_hz": 2, "rate_hz": 2}
    assert receipt.message == "Samples are wanted 2 times a second."


def test_a_higher_one_has_to_fit_into_the_budget() -> None:
    receipt = run(Sampler(), 50)
    assert receipt.after == {"wanted_rate_hz": 50, "rate_hz": 10}
    assert receipt.message == (
        "Samples are wanted 50 times a second; it begins with 10, and rises as the cost budget "
        "allows."
    )


def test_too_seldom_would_be_never() -> None:
    sampler = Sampler()
    receipt = run(sampler, 0.01)
    assert (receipt.state, sampler.rates_hz) == ("refused", (10, 10))
