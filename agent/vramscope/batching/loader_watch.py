"""Which loaders training reads from, and how many samples each step takes: seen at each fetch.

A loader is known by what draws its indices, the ``BatchSampler``: that stays the same from epoch to
epoch, and its iterators know it. Nothing of the job's lives longer because of us.
"""

from __future__ import annotations

import inspect
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

from vramscope.batching.sizes import NewSizes
from vramscope.integrations.batch_shape import sample_count
from vramscope_protocol.columns import UNKNOWN

SAMPLES: Final = "step.batch_samples"
COUNT: Final = "step.batch_count"
LARGEST: Final = "step.batch_size"
_EVAL: Final = "eval"
_MAX_PASSES: Final = 64
_MAX_CHARGE_NS: Final = 50_000
_MAX_FRAMES: Final = 8
_ACCELERATE: Final = "accelerate.data_loader"
_AHEAD: Final = "__iter__"
"""The function there that reads one batch ahead: that of ``DataLoaderShard``."""


class LoaderPass:
    """One iterator of a loader, as long as it is advanced."""

    def __init__(self, iterator: Any, reader: str) -> None:
        self._iterator = weakref.ref(iterator)
        self._sampler: Callable[[], Any] = _weak(getattr(iterator, "_index_sampler", None))
        self.reader = reader
        """What of accelerate reads it: it is a batch ahead of the job, or reads for all ranks."""
        self.samples = 0
        """Of the batches that the job has got from it since the step before."""
        self.batches = 0
        """Number of these."""
        self.largest = 0
        """Samples of the largest."""
        self.fetches = 0
        """Since the step before."""
        self.has_stepped = False
        """Whether a step has ended with a batch of it."""
        self.is_over = False
        self._ahead: int | None = None

    @property
    def iterator(self) -> Any:
        """The iterator, or ``None`` if the job has let go of it."""
        return self._iterator()

    @property
    def index_sampler(self) -> Any:
        """What draws indices for it, or ``None``."""
        return self._sampler()

    def fetched(self, samples: int | None) -> None:
        """One more batch, of so many samples if that is known."""
        self.is_over = False
        self.fetches += 1
        got: int | None = UNKNOWN if samples is None else samples
        if self.reader == _AHEAD:  # what it has read before is what it gives out now
            got, self._ahead = self._ahead, got
        if got is not None:
            self._add(got)

    def ended(self) -> None:
        """There are no more."""
        self.is_over = True
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            self._add(ahead)

    def forget(self) -> None:
        """A step has ended, or it is not training that reads it."""
        self.samples = self.batches = self.largest = self.fetches = 0

    def _add(self, samples: int) -> None:
        is_of_this_rank = self.reader in ("", _AHEAD)
        is_known = samples != UNKNOWN and self.samples != UNKNOWN and is_of_this_rank
        self.samples = self.samples + samples if is_known else UNKNOWN
        self.largest = max(self.largest, samples) if is_known else UNKNOWN
        self.batches = self.batches + 1 if is_of_this_rank else UNKNOWN


class LoaderWatch:
    """Columns of a step row, and the loaders that training reads from. Implements ``StepColumns``.

    Called on the training thread alone.

    Args:
        phase: name of the phase that lasts.
        add_cost_ns: told what it costs at each fetch.
    """

    names = (SAMPLES, COUNT, LARGEST)

    def __init__(self, phase: Callable[[], str], add_cost_ns: Callable[[int], object]) -> None:
        self._phase = phase
        self._add_cost_ns = add_cost_ns
        self._passes: dict[int, LoaderPass] = {}
        self._current: LoaderPass | None = None
        self._samples: int | None = None
        self._has_batch = False
        self._depth = 0
        self._training: tuple[LoaderPass, ...] = ()
        self.batch_count = UNKNOWN
        """Batches of the last step."""
        self.at_boundary: Callable[[], object] | None = None
        """Called at the end of each step, when all of this is up to date."""
        self.at_new_pass: Callable[[LoaderPass], object] | None = None
        """Called when a batch is asked of another iterator than before, for the first time."""
        self.at_fetch: Callable[[Any], object] | None = None
        """Called once, before the next batch is asked for, with the iterator."""
        self.new_sizes: NewSizes | None = None
        """A change of sizes whose first step runs."""

    @property
    def training(self) -> tuple[LoaderPass, ...]:
        """Passes that gave the last step that read any its batches; one may be over by now."""
        return self._training

    def before(self, iterator: Any) -> None:
        """An iterator is asked for its next batch. A loader that reads from another counts once."""
        self._depth += 1
        if self._depth == 1:
            at_fetch, self.at_fetch = self.at_fetch, None
            if at_fetch is not None:
                at_fetch(iterator)
            begin_ns = time.perf_counter_ns()
            self._current = self._pass_of(iterator)
            self._has_batch = False
            self._charge(begin_ns)

    def fetched(self, batch: Any) -> None:
        """It has one."""
        if self._depth == 1:
            begin_ns = time.perf_counter_ns()
            self._has_batch = True
            self._samples = None
            self._samples = sample_count(batch)
            self._charge(begin_ns)

    def after(self, *, is_over: bool) -> None:
        """The call is over; ``is_over`` if there was no batch left."""
        self._depth = max(0, self._depth - 1)
        current = self._current
        if self._depth or current is None:
            return
        begin_ns = time.perf_counter_ns()
        self._current = None
        if is_over:
            current.ended()
        elif self._has_batch:
            current.fetched(self._samples)
            if self._phase() == _EVAL and not current.has_stepped:
                current.forget()
        self._charge(begin_ns)

    def take(self) -> Sequence[int]:
        """Samples of the step that ends now; unknown where nothing was fetched.

        Of several loaders the samples add up, and so do those of the largest batches: a forward
        pass takes one of each.
        """
        read = [each for each in self._passes.values() if each.samples or each.fetches]
        if any(each.has_stepped or not each.is_over for each in read):
            # What was read from beginning to end since the step before was evaluated.
            read = [each for each in read if each.has_stepped or not each.is_over]
        counts = [(each.samples, each.batches, each.largest) for each in read if each.samples]
        for number, each in list(self._passes.items()):
            each.has_stepped |= each in read
            each.forget()
            if each.iterator is None:
                del self._passes[number]
        if read:
            self._training = tuple(read)
        samples, batches, largest = zip(*counts, strict=True) if counts else ((), (), ())
        self.batch_count = _all(max, batches)
        if self.at_boundary is not None:
            self.at_boundary()
        return (_all(sum, samples), self.batch_count, _all(sum, largest))

    def _charge(self, begin_ns: int) -> None:
        # What takes longer was another thread's turn.
        self._add_cost_ns(min(time.perf_counter_ns() - begin_ns, _MAX_CHARGE_NS))

    def _pass_of(self, iterator: Any) -> LoaderPass:
        found = self._passes.get(id(iterator))
        if found is not None and found.iterator is iterator:
            return found
        if len(self._passes) >= _MAX_PASSES:
            self._passes.clear()
        made = self._passes[id(iterator)] = LoaderPass(iterator, _reader())
        if self.at_new_pass is not None:
            self.at_new_pass(made)
        return made


def _weak(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: None


def _all(together: Callable[[Sequence[int]], int], values: Sequence[int]) -> int:
    return UNKNOWN if not values or UNKNOWN in values else together(values)


def _reader() -> str:
    """Name of the function of accelerate that asks for the batch; "" where it is none."""
    module = sys.modules.get(_ACCELERATE)
    path = getattr(module, "__file__", None)
    if path is None:
        return ""
    frame: FrameType | None = inspect.currentframe()
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return ""
        if frame.f_code.co_filename == path:
            return frame.f_code.co_name
        frame = frame.f_back
    return ""
