"""The commands that set the allocator: ``set_allocator_settings`` and ``set_memory_fraction``.

A text that PyTorch does not like is half in force when it says so, and each text sets other
options back. So all of it is checked here before anything is touched, and always the full set sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from vramscope.collectors.allocator_options import (
    DEFAULT,
    OPTIONS,
    Options,
    OptionsError,
    in_force,
    merged,
    options_text,
    read_options,
    reported_options,
)
from vramscope.commands.call import Call, Handler
from vramscope.commands.measures import Measures, measure
from vramscope.commands.ongoing_commands import failure
from vramscope.devices.allocator_control import AllocatorControl, allocator_control
from vramscope.devices.device import Device
from vramscope.guard import Attempt
from vramscope.size_text import size_text
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import CONFLICT, VramscopeError

_NOT_OPTIONS: Final = frozenset({"backend"})
"""Fixed once torch is loaded, whatever is sent."""
_NOTHING: Final = "Nothing was changed."


def setting_handlers(device: Device, known: Callable[[], Options]) -> dict[str, Handler]:
    """The commands that set the allocator of a device, by name.

    Args:
        device: whose allocator.
        known: the options that are known to be set, as texts have set them.
    """

    def settings(call: Call) -> Receipt:
        return _set_allocator_settings(_control(device), known, call)

    def fraction(call: Call) -> Receipt:
        return _set_memory_fraction(device, _control(device), call)

    return {"set_allocator_settings": settings, "set_memory_fraction": fraction}


def _control(device: Device) -> AllocatorControl:
    control = allocator_control(device)
    why_not = control.why_not()
    if why_not is not None:
        raise VramscopeError(CONFLICT, why_not)
    return control


def _set_allocator_settings(
    control: AllocatorControl, known: Callable[[], Options], call: Call
) -> Receipt:
    reported = control.reported()
    from_texts = {name: value for name, value in known().items() if name not in _NOT_OPTIONS}
    before = _readable(in_force(from_texts, reported), control.release)
    try:
        asked = read_options(call.params.settings, control.release)
        full = merged(before, asked, control.release)
    except OptionsError as error:
        return Receipt("refused", message=f"{error}. {_NOTHING}")
    changes = [
        {
            "name": name,
            "before": before.get(name, DEFAULT),
            "after": full.get(name, DEFAULT),
            "effect": OPTIONS[name].effect,
        }
        for name in asked
        if before.get(name, DEFAULT) != full.get(name, DEFAULT)
    ]
    text = options_text(full)
    receipt = Receipt("done", before=_told(reported, before), result={"sent": text})
    receipt.result["changes"] = changes
    if not changes:
        receipt.after = receipt.before
        receipt.message = f"All of it is set so already. {_NOTHING}"
    elif call.dry_run:
        receipt.after = _told({}, full)
        receipt.message = f"Would set {_words(changes)}"
    else:
        _send(control, before, full, receipt)
        if receipt.state == "done":
            receipt.message = f"Set {_words(changes)}"
        after = control.reported()
        receipt.after = _told(after, full if receipt.state == "done" else before)
        _compare(full, after, receipt)
    return receipt


def _send(control: AllocatorControl, before: Options, full: Options, receipt: Receipt) -> None:
    with Attempt() as attempt:
        control.send(options_text(full))
    if attempt.error is None:
        return
    # What stood before the part that PyTorch refuses is in force now.
    back = {**before}
    for name in full.keys() - before.keys():
        default = OPTIONS[name].default if name in OPTIONS else None
        if default is not None:
            back[name] = default
    with Attempt() as second:
        control.send(options_text(back))
    receipt.state = "failed"
    receipt.message = f"PyTorch refuses these settings: {failure(attempt.error)}. "
    if second.error is None:
        receipt.message += "What was set before was sent again."
    else:
        receipt.message += f"What was set before could not be sent again: {failure(second.error)}."


def _compare(full: Options, after: Mapping[str, Any], receipt: Receipt) -> None:
    """Say where the allocator reports another value than the one that it was sent."""
    if receipt.state != "done":
        return
    for name, value in reported_options(after).items():
        wanted = full.get(name)
        if wanted == OPTIONS[name].default:
            wanted = None
        if _number(value) != _number(wanted) and "[" not in f"{value}{wanted}":
            receipt.message += f" PyTorch reports {name}:{value or DEFAULT}, though."


def _number(value: str | None) -> float | str | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return value


def _readable(options: Options, release: tuple[int, int]) -> Options:
    """Without values that PyTorch cannot have taken. Options that are newer than this stay."""
    readable: Options = {}
    for name, value in options.items():
        try:
            option = OPTIONS.get(name)
            readable[name] = value if option is None else option.read(name, value)
        except OptionsError:
            continue
    return readable


def _told(reported: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """The settings of one moment: the whole text, and what the allocator reports by itself."""
    values: dict[str, Any] = {"allocator_settings": options_text(options)}
    values |= {name: value for name, value in options.items() if name in OPTIONS}
    values |= {name: value or DEFAULT for name, value in reported_options(reported).items()}
    return values


def _words(changes: list[dict[str, str]]) -> str:
    parts = [
        f"{change['name']} to {change['after']} (it was {change['before']}), "
        f"which {change['effect']}"
        for change in changes
    ]
    return "; ".join(parts) + "."


# ------------------------------------------------------------------------- the process's own cap


def _set_memory_fraction(device: Device, control: AllocatorControl, call: Call) -> Receipt:
    fraction: float = call.params.fraction
    before = measure(device)
    total_bytes = device.info.total_bytes
    old = control.fraction()
    cap_bytes = None if total_bytes is None else int(total_bytes * fraction)
    allocated_bytes, reserved_bytes = before["allocated_bytes"], before["reserved_bytes"]
    is_below = None not in (cap_bytes, allocated_bytes) and cap_bytes < allocated_bytes
    if is_below:
        message = (
            f"{fraction:g} of the device is {size_text(cap_bytes)}, and "
            f"{size_text(allocated_bytes)} are allocated: the next new segment would fail. "
            f"{_NOTHING}"
        )
        return Receipt("refused", before=_capped(before, old, total_bytes), message=message)
    receipt = Receipt("done", before=_capped(before, old, total_bytes))
    was = "" if old is None else f" (it was {old:g})"
    words = f"{fraction:g} of the device{was}: {size_text(cap_bytes)} for PyTorch's segments."
    if None not in (cap_bytes, reserved_bytes) and cap_bytes < reserved_bytes:
        words += (
            f" {size_text(reserved_bytes)} are reserved, and nothing is freed now: when a new "
            "segment is needed, cached ones go back first, and if that is not enough it fails."
        )
    if call.dry_run:
        receipt.after = _capped(before, fraction, total_bytes)
        receipt.message = f"Would cap at {words}"
        return receipt
    control.set_fraction(fraction)
    receipt.after = _capped(measure(device), control.fraction(), total_bytes)
    receipt.message = f"Capped at {words}"
    if control.fraction() is None:
        receipt.message += " This release of torch cannot be asked what its cap is."
    return receipt


def _capped(measures: Measures, fraction: float | None, total_bytes: int | None) -> Measures:
    is_known = fraction is not None and total_bytes is not None
    return {
        "memory_fraction": fraction,
        "limit_bytes": int(fraction * total_bytes) if is_known else None,  # type: ignore[operator]
        **measures,
    }
