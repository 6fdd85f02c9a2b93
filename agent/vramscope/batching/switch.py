"""A change of sizes that is decided, and made at its batch whatever becomes of the command.

The sizes change as the batch is drawn, accumulation at the end of the last step before it. Both go
by the number of the batch, so that all ranks do it at the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import structs

from vramscope.batching.accumulation import Batches, Change
from vramscope.batching.loader_in_use import LoaderInUse
from vramscope.batching.loader_watch import LoaderPass, LoaderWatch
from vramscope.batching.plan import Plan
from vramscope.batching.redraw import Redraw
from vramscope.batching.sizes import Sizes
from vramscope_protocol.errors import VramscopeError


class Switch:
    """Makes a change that was checked; on the training thread.

    Args:
        plan: checked.
        wanted: the sizes from then on.
        loaders: which loaders training reads from.
    """

    def __init__(self, plan: Plan, wanted: Sizes, loaders: LoaderWatch) -> None:
        self._plan = plan
        self._loaders = loaders
        self.wanted = wanted
        self._redraw: Redraw | None = None
        self.is_made = False
        """Whether the next step is one of the new sizes."""
        self._begin()

    @property
    def index_sampler(self) -> Any:
        """What draws the batches that change; ``None`` where the job takes them otherwise."""
        loader = self._plan.loader
        return None if loader is None else loader.outermost

    def at_boundary(self) -> None:
        """A step has ended: it may have been the last one before the change."""
        if self.is_made:
            return
        loader = self._plan.loader
        if loader is None or self._is_over(loader):
            # The loop has left the epoch before the batch came: the same for the one it is in now.
            self._again()
        elif self._plan.trained >= self._plan.at:
            self._make()

    def at_new_pass(self, begun: LoaderPass) -> None:
        """Another epoch begins. If the one before was left in between, its sizes may be new."""
        redraw, change, loader = self._redraw, self._plan.change, self._plan.loader
        if self.is_made or redraw is None or change is None or loader is None:
            return
        is_ours = begun.index_sampler is loader.outermost
        if is_ours and not redraw.is_pending and begun.iterator is not loader.iterator:
            later = change.batches.later
            batches = Batches(0, later, later)
            self.is_made = True
            self._plan.accumulation.set(structs.replace(change, batches=batches))

    def leave(self) -> None:
        """The agent goes: what is not begun does not happen, what is begun is completed."""
        if self.is_made:
            return
        if self._redraw is not None and self._redraw.cancel():
            self.is_made = True
            return
        self._make()

    def _begin(self) -> None:
        plan, loader = self._plan, self._plan.loader
        if loader is None:
            if plan.declared is not None:
                plan.declared.set_size(self.wanted.batch_size)
            self._make()
        elif not loader.is_running:
            loader.samplers.set(self.wanted.batch_size)
            self._make()
        else:
            self._redraw = loader.redraw()
            self._redraw.change_at(None if plan.is_at_end else plan.at, self._apply(loader))
            if plan.trained >= plan.at:
                self._make()

    def _apply(self, loader: LoaderInUse) -> Any:
        samplers, size = loader.samplers, self.wanted.batch_size
        is_at_end = self._plan.is_at_end

        def apply(source: Any) -> Iterator[Any] | None:
            goes_on = None if is_at_end else samplers.continuation(source)
            samplers.set(size)
            return goes_on

        return apply

    def _make(self) -> None:
        change: Change | None = self._plan.change
        self.is_made = True
        loader = self._plan.loader
        redraw, plan = self._redraw, self._plan
        # A shard of accelerate looks at its size when it ends. One that has ended is asked no more:
        # what was to happen at its end has to happen here.
        is_shard = loader is not None and loader.samplers.shard is not None
        ends_by_itself = plan.is_at_end and is_shard and redraw is not None and not redraw.is_over
        if redraw is not None and not ends_by_itself and redraw.batches >= plan.at:
            # Not only at the next draw: another command may ask before what the sizes are.
            redraw.change_now()
        if change is not None:
            self._plan.accumulation.set(change)

    def _is_over(self, loader: LoaderInUse) -> bool:
        redraw = getattr(loader.iterator, "_sampler_iter", None)
        if redraw is not self._redraw:
            return True
        now = [each for each in self._loaders.training if not each.is_over]
        return bool(now) and all(each.iterator is not loader.iterator for each in now)

    def _again(self) -> None:
        if self._redraw is not None:
            self._redraw.cancel()
        try:
            plan = Plan(self._loaders)
            plan.check(self.wanted)
        except VramscopeError:
            self.is_made = True
            raise
        self._plan = plan
        self._begin()
