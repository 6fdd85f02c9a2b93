"""vramscope: a live dashboard for the GPU memory of a running PyTorch training job.

    import vramscope
    vramscope.attach()

Importing this is quick and needs neither torch nor a GPU. Nothing here raises into the job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from vramscope import current as _current
from vramscope._version import __version__
from vramscope.stopped import Stopped

if TYPE_CHECKING:
    from vramscope.batching.declared_batch_size import BatchSize
    from vramscope.phases.phase import Phase
    from vramscope.session import Session

_Function = TypeVar("_Function", bound=Callable[..., Any])

__all__ = [
    "Stopped",
    "__version__",
    "attach",
    "batch_size",
    "command",
    "detach",
    "log",
    "phase",
    "should_stop",
    "step",
]


def attach(
    url: str | None = None,
    token: str | None = None,
    run: str | None = None,
    *,
    rate_hz: float | None = None,
    cost_budget: float | None = None,
    peaks: bool | None = None,
    parts_budget: float | None = None,
    fields: Iterable[str] | None = None,
    allow: str | Iterable[str] | None = None,
    launch_id: str | None = None,
    emulate: bool | None = None,
    capacity: int | str | None = None,
    outbox_bytes: int | str | None = None,
    spool_bytes: int | str | None = None,
    spool_dir: str | None = None,
    snapshot_bytes: int | str | None = None,
    explain_growth: bool | None = None,
    history_rule: str | None = None,
    oom_reports: bool | None = None,
    exit_timeout_s: float | None = None,
    local_server: bool | None = None,
) -> Session:
    """Watch this process. Attaching twice is one attach: the same session is returned.

    An option that is not given is read from ``VRAMSCOPE_`` and its name in capitals.

    Args:
        url: the server, as ``http://host:port``; without one the local server is found or started.
        token: the server's token.
        run: name of the run; the script's name by default.
        rate_hz: samples a second.
        cost_budget: CPU time that sampling may take, as a fraction of one core.
        peaks: whether the exact peak of each step is taken.
        parts_budget: time that splitting steps into parts may add, as a fraction of the step
            time; 0 never splits one.
        fields: series to stream instead of the default set.
        allow: ``"observe"`` or ``"control"``, or the names of the commands that may run.
        launch_id: what all ranks of one launch have in common, where no launcher says so.
        emulate: watch CPU tensors through an emulated device.
        capacity: memory of the emulated device, such as ``"8GiB"``.
        outbox_bytes: memory for what is not delivered yet.
        spool_bytes: disk for what does not fit there; 0 is none.
        spool_dir: folder for that.
        snapshot_bytes: disk, in the same folder, for snapshots that are not delivered yet.
        explain_growth: whether the agent may find out what grows when it is asked.
        history_rule: when to record the history without being asked, such as ``"above 90%"``.
        oom_reports: whether it is written down what is known when memory runs out.
        exit_timeout_s: how long the end of the process may wait for delivery.
        local_server: whether a local server may be started.
    """

    def open_session() -> Session:
        from vramscope.session import open_session

        return open_session(
            url=url,
            token=token,
            run=run,
            rate_hz=rate_hz,
            cost_budget=cost_budget,
            peaks=peaks,
            parts_budget=parts_budget,
            fields=fields,
            allow=allow,
            launch_id=launch_id,
            emulate=emulate,
            capacity=capacity,
            outbox_bytes=outbox_bytes,
            spool_bytes=spool_bytes,
            spool_dir=spool_dir,
            snapshot_bytes=snapshot_bytes,
            explain_growth=explain_growth,
            history_rule=history_rule,
            oom_reports=oom_reports,
            exit_timeout_s=exit_timeout_s,
            local_server=local_server,
        )

    return _current.session_or(open_session)


def detach() -> None:
    """Stop watching this process."""
    session = _current.session()
    if session is not None:
        session.detach()


def step() -> None:
    """Mark the end of one optimizer step; needed only where no PyTorch optimizer is used."""
    session = _current.session()
    if session is not None:
        session.step()


def phase(name: str) -> Phase:
    """Say what the job is doing: ``with phase("eval"):``, or as a decorator of a function.

    Args:
        name: 1 to 60 printable characters. The page knows "eval" and "checkpoint", and shows
            other names as they are.
    """
    from vramscope.phases.phase import Phase

    return Phase(name)


@overload
def command(function: _Function, /) -> _Function: ...


@overload
def command(
    name: str | None = None,
    /,
    *,
    right: Literal["view", "control"] = "control",
    place: Literal["step boundary", "agent thread"] = "step boundary",
    same_step: bool = False,
    changes_training: bool = False,
) -> Callable[[_Function], _Function]: ...


def command(
    given: Any = None,
    /,
    *,
    right: str = "control",
    place: str = "step boundary",
    same_step: bool = False,
    changes_training: bool = False,
) -> Any:
    """Let a function of the job be a command on the page, called ``user.`` and its name.

        @vramscope.command
        def save(tag: str = "now", keep: Annotated[int, (1, 9)] = 3) -> str:
            "Save a checkpoint."

    Its parameters are ``int``, ``float``, ``str``, ``bool`` or a ``Literal`` of texts, and become a
    form. What it returns, or raises, is in the receipt. The function itself stays as it is.

    Args:
        given: the function, or another name for it.
        right: who may ask for it: whoever may ``"view"``, or ``"control"``.
        place: on the training thread at a ``"step boundary"``, or at once on the ``"agent
            thread"``, which must touch neither the device nor what trains.
        same_step: at the end of the same step on all ranks, or on none.
        changes_training: whoever asks for it confirms it once more, and a policy needs consent.
    """

    name = None if callable(given) else given

    def decorate(function: Any) -> Any:
        from vramscope.commands.user import declare

        declare(
            function,
            name,
            right=right,
            place=place,
            same_step=same_step,
            changes_training=changes_training,
        )
        return function

    return decorate(given) if callable(given) else decorate


def batch_size(
    target: Any,
    accumulation: Any = None,
    *,
    size: int | None = None,
    steps: int | None = None,
) -> BatchSize:
    """Let the page change the batch size of a training loop of your own, at the end of a step.

        sizes = vramscope.batch_size(loader, accumulation=2)
        for number, batch in enumerate(loader, 1):
            (loss_of(batch) / sizes.accumulation).backward()
            if number % sizes.accumulation == 0:
                optimizer.step()

    The frameworks need none of this, and neither does a loop whose global batch may change.

    Args:
        target: a ``DataLoader``, a ``BatchSampler``, or a function that takes the new size.
        accumulation: batches of one optimizer step, for a loop that reads ``.accumulation`` of what
            is returned; or an object with such an attribute, or a function like ``target``.
        size: the present batch size, where ``target`` is a function.
        steps: the present accumulation, where ``accumulation`` is a function.
    """
    from vramscope.batching.declared_batch_size import BatchSize, declare

    sizes = BatchSize(target, accumulation, size, steps)
    declare(sizes)
    return sizes


def should_stop() -> bool:
    """Whether a person has told training to end: ``if vramscope.should_stop(): break``.

    It changes at the end of a step, of the same one on all ranks. A loop that never asks is ended
    by :class:`vramscope.Stopped`, which is like Ctrl-C.
    """
    session = _current.session()
    return session is not None and session.should_stop()


def log(**values: object) -> None:
    """Attach numbers of your own to the current step, such as ``log(loss=0.3)``."""
    session = _current.session()
    if session is not None:
        session.log(**values)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext vramscope`` in a notebook: makes ``%vramscope`` known there."""
    from vramscope.notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext vramscope``: forgets it again."""
    from vramscope.notebook.extension import unload

    unload(shell)
