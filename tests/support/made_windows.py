"""A training as its allocator sees it: what stays, and what each step takes by its batch."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.support.made_recordings import MIB, RecordedModel, cut
from vramscope_analysis.allocator import Block, OutOfMemoryError
from vramscope_analysis.batch.scaled_window import ScaledWindow

WEIGHTS = (12 * MIB, 7 * MIB, 3 * MIB)
SAMPLE = (640 * 1024, 1_300_000, 900_000)
"""What each layer keeps of a sample."""


@dataclass
class MadeTraining:
    """Takes steps of any batch size. Gradients come in the backward pass and stay until the next.

    Args:
        allocator: what it asks.
    """

    allocator: RecordedModel
    weights: list[Block] = field(default_factory=list[Block])
    state: list[Block] = field(default_factory=list[Block])
    gradients: list[Block] = field(default_factory=list[Block])
    loss: Block | None = None

    def begin(self) -> None:
        """Ask for parameters."""
        self.weights = [self.allocator.model.malloc(size) for size in WEIGHTS]

    def step(self, batch: int) -> None:
        """One step; the loss of the one before goes when the next is there."""
        model = self.allocator.model
        for gradient in self.gradients:
            model.free(gradient)
        kept = [model.malloc(size * batch) for size in SAMPLE]
        loss = model.malloc(2 * SAMPLE[0] * batch)
        if self.loss is not None:
            model.free(self.loss)
        self.loss = loss
        self.gradients = []
        for size, block in zip(reversed(WEIGHTS), reversed(kept), strict=True):
            self.gradients.append(model.malloc(size))
            model.free(block)
        if not self.state:  # the optimizer's, two of each
            self.state = [model.malloc(size) for size in WEIGHTS for _ in range(2)]


def scaled(batch: int, steps: int = 2) -> ScaledWindow:
    """Some steps of a training that goes on for longer."""
    training = MadeTraining(RecordedModel())
    training.begin()
    for _ in range(3):
        training.step(batch)
    entries = training.allocator.entries
    first, ends = len(entries), list[int]()
    for _ in range(steps):
        training.step(batch)
        ends.append(len(entries) - first - 1)
    # An entry a microsecond.
    return ScaledWindow(cut(training.allocator.recording(), first), first + ends[0])


def real_peak(batch: int) -> int:
    """What tensors take at most when it really trains with this size."""
    training = MadeTraining(RecordedModel())
    training.begin()
    for _ in range(3):
        training.step(batch)
    return training.allocator.model.counters.all.active_bytes.peak


def really_fits(batch: int, room_bytes: int, before: int | None = None) -> bool:
    """Whether it can change to this size from another one, or begin with it."""
    training = MadeTraining(RecordedModel(limit_bytes=room_bytes))
    try:
        training.begin()
        for size in (before, before, batch, batch):
            training.step(size or batch)
    except OutOfMemoryError:
        return False
    return True
