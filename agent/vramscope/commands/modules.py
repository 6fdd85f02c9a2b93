"""The command ``profile_modules``: memory by ``nn.Module`` over a few steps."""

from __future__ import annotations

import sys

from vramscope.commands.call import Call, Handler, Ongoing
from vramscope.modules.module_profile import ModuleProfile, Read, Roots, compiled_reason
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import CONFLICT, VramscopeError


def module_handlers(read: Read, roots: Roots) -> dict[str, Handler]:
    """The command about modules, by name.

    Args:
        read: see ``ModuleProfile``.
        roots: see there, too.
    """
    running: list[ModuleWatch] = []

    def profile_modules(call: Call) -> Ongoing:
        if "torch.nn.modules.module" not in sys.modules:
            raise VramscopeError(CONFLICT, "this job has not imported torch.nn: it has no modules")
        reason = compiled_reason()
        if reason is not None:
            raise VramscopeError(CONFLICT, f"{reason}; nothing was changed")
        if any(watch.is_on for watch in running):
            raise VramscopeError(CONFLICT, "modules are being watched already")
        if read(False) is None:
            raise VramscopeError(CONFLICT, "the peaks between two moments cannot be read here")
        running[:] = [ModuleWatch(ModuleProfile(read, call.params.steps, roots), call.params.steps)]
        return running[0]

    return {"profile_modules": profile_modules}


class ModuleWatch:
    """Watches for some steps; implements ``Ongoing``. Begins to watch at once."""

    def __init__(self, profile: ModuleProfile, steps: int) -> None:
        self._profile = profile
        self._steps = steps
        self._done = 0
        self.is_on = True
        """Whether modules are hooked."""
        profile.start()

    @property
    def progress(self) -> str:
        """How many steps have been watched."""
        return f"{self._done} of {self._steps} steps"

    def poll(self, step: int) -> Receipt | None:
        """One more step has ended."""
        del step
        self._done += 1
        return self._receipt("done", "") if self._profile.step_ended() else None

    def poll_on_agent_thread(self) -> Receipt | None:
        """Nothing finishes between two boundaries."""
        return None

    def cancel(self, reason: str) -> Receipt:
        """Take the hooks out, and tell what was seen by then."""
        return self._receipt("failed", f"{reason}; ")

    def _receipt(self, state: str, why: str) -> Receipt:
        self._profile.stop()
        self.is_on = False
        report = self._profile.report()
        modules, cost_ms = len(report["modules"]), report["added_ms_per_step"]
        text = (
            f"{why}{modules} modules over {self._done} steps; watching added "
            f"{cost_ms:.1f} ms a step."
        )
        return Receipt("done" if state == "done" else "failed", message=text, result=report)
