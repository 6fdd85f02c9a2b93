"""In the place of NVML in a job: put this folder first on its ``PYTHONPATH``.

``FAKE_NVML`` is JSON: ``devices`` as :class:`tests.support.fake_nvml.FakeNvml` takes them, and for
each function that fails the name of its error under ``errors``. Processes on a device are files in
``FAKE_NVML_PROCESSES``/UUID whose name is the pid and whose text is the bytes. Like the real one,
it has a lock that a forked child inherits; how long it is held is ``FAKE_NVML_CALL_S``.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support.fake_nvml import FakeNvml

time.sleep(float(os.environ.get("FAKE_NVML_IMPORT_S", "0")))

_lock = threading.Lock()
_given: dict[str, Any] = json.loads(os.environ.get("FAKE_NVML", "{}"))
_call_s = float(os.environ.get("FAKE_NVML_CALL_S", "0"))


class Driver(FakeNvml):
    """The fake, as slow as is wanted."""

    def __getattr__(self, name: str) -> Any:
        call = super().__getattr__(name)

        def locked(*arguments: Any, **options: Any) -> Any:
            with _lock:
                time.sleep(_call_s)
                if threading.current_thread() is threading.main_thread():
                    self.calls.append("on the main thread")
                return call(*arguments, **options)

        return locked

    def _nvmlDeviceGetComputeRunningProcesses(self, device: Any) -> Any:
        folder = Path(os.environ.get("FAKE_NVML_PROCESSES", "/nowhere"), device["uuid"])
        return [
            SimpleNamespace(pid=int(file.name), usedGpuMemory=int(file.read_text()))
            for file in (folder.iterdir() if folder.is_dir() else ())
        ]


def _errors(names: dict[str, str]) -> dict[str, Exception]:
    return {function: getattr(FakeNvml, name)(name) for function, name in names.items()}


def _device(given: dict[str, Any]) -> dict[str, Any]:
    parts = {"parts": [_device(part) for part in given["parts"]]} if "parts" in given else {}
    return {**given, "errors": _errors(given.get("errors", {})), **parts}


_driver = Driver(*map(_device, _given.get("devices", [])))
_driver.errors = _errors(_given.get("errors", {}))
sys.modules[__name__] = _driver
