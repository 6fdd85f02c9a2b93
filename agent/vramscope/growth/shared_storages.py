"""Storages that were given to another process: it may keep their memory when all here is gone.

PyTorch keeps the memory of a CUDA storage that it has sent until the receiver lets go of it
(``torch/csrc/CudaIPCTypes.cpp``). There is no object for it in Python, so that the sending is seen.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from vramscope.patch import Patch

MAX_ADDRESSES: Final = 10_000


class SharedStorages:
    """Notes the addresses of storages that are sent from now on."""

    def __init__(self) -> None:
        self.addresses: set[int] = set()
        self._patch: Patch | None = None

    def install(self) -> None:
        """Watch, where this PyTorch has the function that every sending goes through."""
        owner: Any = getattr(sys.modules.get("torch.storage"), "TypedStorage", None)
        if hasattr(owner, "_share_cuda_"):
            self._patch = Patch(owner, "_share_cuda_", self._before, _nothing, "shared storages")
            self._patch.install()

    def remove(self) -> None:
        """Leave PyTorch as it was. Any thread."""
        if self._patch is not None:
            self._patch.remove()

    def forget_after_fork(self) -> None:
        """In a forked child: do nothing any more."""
        if self._patch is not None:
            self._patch.forget_after_fork()

    def _before(self, storage: Any) -> None:
        untyped = getattr(storage, "_untyped_storage", None)
        if untyped is not None and len(self.addresses) < MAX_ADDRESSES:
            self.addresses.add(untyped.data_ptr())


def _nothing(first: Any, raised: BaseException | None) -> None:
    del first, raised
