"""A tracker for Hugging Face accelerate.

    from vramscope.integrations.accelerate import VramscopeTracker

    accelerator = Accelerator(log_with=VramscopeTracker())
    accelerator.init_trackers("my project")
    accelerator.log({"loss": loss.item(), "epoch": epoch})

Attaches every process, not only the main one, and shows the numbers that are logged. Optimizer
steps are counted by the optimizer's own hook: with gradient accumulation, one for each real step.
"""

from __future__ import annotations

from typing import Any, Final

from accelerate.tracking import GeneralTracker

import vramscope
from vramscope import current
from vramscope.guard import guarded
from vramscope.session import Session

_WHERE: Final = "accelerate tracker"


class VramscopeTracker(GeneralTracker):  # type: ignore[misc]  # accelerate is untyped here
    """Attaches when the trackers are initialised, if nobody has, and passes numbers on.

    Args:
        options: of :func:`vramscope.attach`, for the case that this attaches.
    """

    name = "vramscope"
    requires_logging_directory = False
    main_process_only = False

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = options

    @property
    def tracker(self) -> Session | None:
        """The session of this process."""
        return current.session()

    @guarded(_WHERE)
    def start(self) -> None:
        """Attach, if nobody has; by now every process knows its rank."""
        vramscope.attach(**self._options)

    @guarded(_WHERE)
    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Attach where accelerate has no ``start`` yet. The configuration may hold secrets."""
        vramscope.attach(**self._options)

    @guarded(_WHERE)
    def log(self, values: dict[str, Any], step: int | None = None, **_: Any) -> None:
        """Show numbers with the step that ends next, whatever number the caller gives it."""
        vramscope.log(**{name: value for name, value in values.items() if _is_number(value)})


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) or getattr(value, "numel", lambda: 0)() == 1
