"""The commands about what CUDA's libraries keep: cuFFT's plans and the workspaces of cuBLAS."""

from __future__ import annotations

import gc
import sys
from typing import Any

from vramscope.commands.call import Call, Handler
from vramscope.commands.measures import Measures, fall, measure
from vramscope.devices.caching_allocator import initialised_cuda
from vramscope.devices.device import Device
from vramscope.size_text import size_text
from vramscope_protocol.columns import UNKNOWN
from vramscope_protocol.commands import Receipt
from vramscope_protocol.errors import CONFLICT, VramscopeError


def library_handlers(device: Device) -> dict[str, Handler]:
    """The commands that let libraries go of memory, by name."""

    def plans(call: Call) -> Receipt:
        del call
        return _clear_plan_caches(device)

    def workspaces(call: Call) -> Receipt:
        del call
        return _clear_cublas_workspaces(device)

    return {"clear_plan_caches": plans, "clear_cublas_workspaces": workspaces}


def _clear_plan_caches(device: Device) -> Receipt:
    _cuda(device)
    backends: Any = getattr(sys.modules["torch"], "backends", None)
    caches: Any = getattr(getattr(backends, "cuda", None), "cufft_plan_cache", None)
    if caches is None:
        raise VramscopeError(CONFLICT, "this torch keeps no plans of cuFFT")
    cache = caches[device.info.index]
    plans = int(cache.size)
    if plans:
        _refuse_with_graphs("cuFFT's plans")
    before = _measures(device)
    cache.clear()
    after = _measures(device)
    text = f"Forgot {plans} plans of cuFFT; {_freed_text(before, after)}"
    result = {"plans": plans, "freed_bytes": _freed_bytes(before, after)}
    return Receipt("done", before=before, after=after, message=text, result=result)


def _clear_cublas_workspaces(device: Device) -> Receipt:
    c_module = _cuda(device)
    clear = getattr(c_module, "_cuda_clearCublasWorkspaces", None)
    if clear is None:
        raise VramscopeError(CONFLICT, "this torch cannot let go of the workspaces of cuBLAS")
    _refuse_with_graphs("workspaces of cuBLAS")
    before = _measures(device)
    clear()
    after = _measures(device)
    text = f"Let go of the workspaces of cuBLAS; {_freed_text(before, after)}"
    result = {"freed_bytes": _freed_bytes(before, after)}
    return Receipt("done", before=before, after=after, message=text, result=result)


def _cuda(device: Device) -> Any:
    if device.info.emulated:
        raise VramscopeError(CONFLICT, "an emulated device has no libraries of CUDA")
    c_module = initialised_cuda()
    if c_module is None:
        raise VramscopeError(CONFLICT, "this job has not used CUDA, so its libraries hold nothing")
    return c_module


def _refuse_with_graphs(what: str) -> None:
    """A captured graph has written down the addresses of what it works with, and uses them."""
    graph: Any = getattr(sys.modules["torch"].cuda, "CUDAGraph", None)
    # By its type: to ask an object itself would run code of the job.
    if graph is not None and any(issubclass(type(each), graph) for each in gc.get_objects()):
        raise VramscopeError(
            CONFLICT,
            f"this job has captured CUDA graphs, which may use {what}; nothing was changed",
        )


def _measures(device: Device) -> Measures:
    measures = measure(device)
    process_bytes = device.device_memory().process_bytes
    measures["process_bytes"] = None if process_bytes == UNKNOWN else process_bytes
    return measures


def _freed_bytes(before: Measures, after: Measures) -> int | None:
    """What PyTorch's allocator got back, and what the driver did beside that, if it tells."""
    allocated_bytes = fall(before, after, "allocated_bytes")
    process_bytes = fall(before, after, "process_bytes")
    if allocated_bytes is None:
        return process_bytes
    return allocated_bytes + max(0, process_bytes or 0)


def _freed_text(before: Measures, after: Measures) -> str:
    freed_bytes = fall(before, after, "allocated_bytes")
    text = f"allocated fell by {size_text(freed_bytes)}, which stays cached."
    process_bytes = fall(before, after, "process_bytes")
    if process_bytes:
        text = f"{text[:-1]}; the process holds {size_text(process_bytes)} less of the device."
    return text
