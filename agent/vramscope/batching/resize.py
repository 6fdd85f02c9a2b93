"""The commands ``set_batch_size`` and ``set_accumulation``.

Whatever can differ between ranks is refused before anything is touched. What was begun is made at
its batch on every rank, also where the command itself has come to its end before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from vramscope.batching.accumulation import conflict
from vramscope.batching.consent import Consent
from vramscope.batching.first_step import FirstStep
from vramscope.batching.loader_in_use import world_size
from vramscope.batching.loader_watch import LoaderPass, LoaderWatch
from vramscope.batching.plan import Plan
from vramscope.batching.resize_watch import ResizeWatch
from vramscope.batching.sizes import NewSizes, Sizes, wanted_sizes
from vramscope.batching.switch import Switch
from vramscope.commands.call import Answer, Call, Handler
from vramscope.commands.ongoing_commands import failure
from vramscope.guard import Attempt, guarded, summary
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import VramscopeError
from vramscope_protocol.parameters import BatchSizeParams

_OOMS: Final = "num_ooms"


class Steps(Protocol):
    """What is asked of the tracker of steps."""

    loaders: LoaderWatch

    @property
    def peak_bytes(self) -> int:
        """Highest allocated bytes of the step that ended last."""
        ...

    def has_graphs(self) -> bool:
        """Whether the job has captured CUDA graphs by hand."""
        ...


class _Counters(Protocol):
    def memory_stats(self) -> Mapping[str, Any] | None: ...


class Resizing:
    """Runs the commands; one at a time.

    Args:
        device: asked whether memory ran out.
        steps: the tracker of steps.
    """

    def __init__(self, device: _Counters, steps: Callable[[], Steps]) -> None:
        self._device = device
        self._steps = steps
        self._consent = Consent()
        self._switch: Switch | None = None
        self.error: str | None = None
        """Why a change that was begun could not be made."""

    def handlers(self) -> dict[str, Handler]:
        """The commands, by name."""
        return {"set_batch_size": self._resize, "set_accumulation": self._resize}

    def leave(self) -> None:
        """The agent goes."""
        switch, self._switch = self._switch, None
        if switch is not None:
            with guarded("batch size"):
                switch.leave()

    def begin(self, plan: Plan, wanted: Sizes) -> Switch:
        """Make a change that was checked, now or at its batch."""
        loaders = self._steps().loaders
        self.error = None
        switch = Switch(plan, wanted, loaders)
        if not switch.is_made:
            self._switch = switch
            loaders.at_boundary = self._at_boundary
            loaders.at_new_pass = self._at_new_pass
        return switch

    def before_next_fetch(self, call: Callable[[Any], object]) -> None:
        """Have something called on the training thread, before it takes another batch."""
        self._steps().loaders.at_fetch = call

    def first_step_begins(self, sizes: NewSizes) -> None:
        """Let a report of memory that runs out say that these sizes are new."""
        self._steps().loaders.new_sizes = sizes

    def first_step_ends(self) -> None:
        """Nothing is new any more."""
        self._steps().loaders.new_sizes = None

    def plan(self) -> Plan:
        """What there is to change now.

        Raises:
            VramscopeError: ``conflict``, nothing.
        """
        return Plan(self._steps().loaders)

    def ooms(self) -> int:
        """How often memory ran out."""
        stats = self._device.memory_stats()
        return int((stats or {}).get(_OOMS, 0))

    def peak_bytes(self) -> int | None:
        """Of the step that ended last, if it is known."""
        peak_bytes = self._steps().peak_bytes
        return None if peak_bytes == UNKNOWN else peak_bytes

    def _at_boundary(self) -> None:
        switch = self._switch
        if switch is not None:
            self._go_on(switch, switch.at_boundary)

    def _at_new_pass(self, begun: LoaderPass) -> None:
        switch = self._switch
        if switch is not None:
            self._go_on(switch, lambda: switch.at_new_pass(begun))

    def _go_on(self, switch: Switch, call: Callable[[], object]) -> None:
        with Attempt() as attempt:
            call()
        if attempt.error is not None:
            self.error = summary(attempt.error)
        if switch.is_made or attempt.error is not None:
            self._switch = None

    def _resize(self, call: Call) -> Answer:
        checked: tuple[Plan, Sizes] | None = None
        with Attempt() as attempt:
            checked = self._checked(call)
        refusal = "" if attempt.error is None else failure(attempt.error)
        key = f"vramscope/{call.id}/{call.step}"
        has_others = world_size() > 1
        if has_others and not call.dry_run:
            shown: dict[str, Any] = {"refusal": refusal}
            if checked is not None:
                shown |= {**checked[0].shown(), "wanted": checked[1].told()}
            refusal = self._consent.reason_against(f"{key}/sizes", shown) or ""
        if checked is None or refusal:
            text = f"{refusal[:1].upper()}{refusal[1:]}. Nothing was changed."
            return Receipt("refused", message=text)
        plan, wanted = checked
        before = {**plan.now.told(), "peak_bytes": self.peak_bytes()}
        after: dict[str, Any] = dict(wanted.told())
        if wanted == plan.now:
            return Receipt("done", before=before, after=after, message="It is so already.")
        words = [_words(plan.now, wanted), plan.effect(), plan.epoch(wanted)]
        if call.dry_run:
            result = {"switch_in_batches": plan.at - plan.trained, "with": plan.accumulation.name}
            text = " ".join(filter(None, words))
            return Receipt("done", before=before, after=after, message=text, result=result)
        switch = self.begin(plan, wanted)
        together = FirstStep(self._consent, f"{key}/first") if has_others else None
        return ResizeWatch(self, switch, plan.now, before, words, together, call.step)

    def _checked(self, call: Call) -> tuple[Plan, Sizes]:
        """What is to be done; raises why it is refused."""
        if self._switch is not None:
            raise conflict("another change of sizes is being made")
        if self._steps().has_graphs():
            raise conflict("the job replays CUDA graphs that it captured itself, of a fixed size")
        plan = self.plan()
        wanted = wanted_sizes(plan.now, call.params)
        if wanted == plan.now:
            return plan, wanted
        try:
            plan.check(wanted)
        except VramscopeError:
            alone = _without_accumulation(plan.now, wanted, call.params)
            if alone == wanted:
                raise
            wanted = alone
            plan.check(wanted)
        return plan, wanted


def resize_handlers(
    device: _Counters, steps: Callable[[], Steps], closers: list[Callable[[], object]]
) -> dict[str, Handler]:
    """The two commands, by name.

    Args:
        device: asked whether memory ran out.
        steps: the tracker of steps.
        closers: what is called when the agent goes.
    """
    resizing = Resizing(device, steps)
    closers.append(resizing.leave)
    return resizing.handlers()


def _without_accumulation(now: Sizes, wanted: Sizes, params: Any) -> Sizes:
    """The size alone, where another global batch is consented to and nothing else can be had."""
    is_free = isinstance(params, BatchSizeParams) and params.accumulation is None
    if not is_free or not params.change_global_batch:
        return wanted
    return Sizes(wanted.batch_size, now.accumulation, now.ranks)


def _words(now: Sizes, then: Sizes) -> str:
    parts = [
        f"batch size {now.batch_size} to {then.batch_size}",
        f"accumulation {now.accumulation} to {then.accumulation}",
    ]
    if now.global_batch == then.global_batch:
        parts.append(f"the global batch stays {now.global_batch}")
    else:
        parts.append(f"the global batch goes from {now.global_batch} to {then.global_batch}")
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."
