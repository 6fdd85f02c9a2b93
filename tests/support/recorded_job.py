"""Short recordings for tests: calls made to the model, written down as PyTorch would."""

from __future__ import annotations

from typing import Any

from vramscope_analysis.allocator import AllocatorSettings, Block, CachingAllocator
from vramscope_analysis.replay.recording import Recording
from vramscope_analysis.snapshot import Snapshot

MIB = 1 << 20
START_US = 1_800_000_000_000_000


class RecordedJob:
    """A job whose allocator is the model. Each entry comes a microsecond after the one before.

    Args:
        settings: of the allocator.
        limit_bytes: memory limit of the process.
        capacity_bytes: memory of the device.
        version: torch release; from 2.12 on entries name their pool.
        stack: name of the caller, which goes into the frames of entries while it is set.
    """

    def __init__(
        self,
        settings: AllocatorSettings | None = None,
        *,
        limit_bytes: int | None = None,
        capacity_bytes: int | None = None,
        version: tuple[int, int] = (2, 11),
    ) -> None:
        self.stack = ""
        self.entries: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self._version = version
        self.model = CachingAllocator(
            capacity_bytes,
            settings,
            limit_bytes=limit_bytes,
            version=version,
            on_event=self._write,
        )

    @property
    def now_us(self) -> int:
        return START_US + len(self.entries)

    def malloc(
        self, size_bytes: int, stream: int = 0, pool_id: tuple[int, int] | None = None
    ) -> Block:
        return self.model.malloc(size_bytes, stream, pool_id)

    def free(self, *blocks: Block) -> None:
        for block in blocks:
            self.model.free(block)

    def step(self, optimizer: str = "AdamW") -> None:
        """The annotations of one optimizer step."""
        for stage in ("START", "END"):
            self.annotations.append(
                {
                    "name": f"Optimizer.step#{optimizer}.step",
                    "stage": stage,
                    "device": 0,
                    "time_us": self.now_us,
                }
            )

    def plain(self) -> dict[str, Any]:
        """The snapshot in PyTorch's structure."""
        settings = self.model.settings
        limit = settings.max_split_size_bytes
        divisions = settings.roundup_power2_divisions
        return {
            "segments": self.model.segments(),
            "device_traces": [self.entries],
            "allocator_settings": {
                "PYTORCH_CUDA_ALLOC_CONF": "",
                "max_split_size": limit if limit < 1 << 62 else -1,
                "garbage_collection_threshold": settings.garbage_collection_threshold,
                "expandable_segments": settings.expandable_segments,
                "graph_capture_record_stream_reuse": False,
                "roundup_power2_divisions": {
                    str(1 << slot): count for slot, count in enumerate(divisions)
                },
            },
            "external_annotations": self.annotations,
        }

    def snapshot(self) -> Snapshot:
        return Snapshot.from_plain(self.plain())

    def recording(self) -> Recording:
        return Recording.from_snapshot(self.snapshot())

    def _write(
        self, action: str, address: int, size_bytes: int, stream: int, pool_id: tuple[int, int]
    ) -> None:
        entry: dict[str, Any] = {
            "action": action,
            "device_free" if action == "oom" else "addr": address,
            "size": size_bytes,
            "stream": stream,
            "time_us": self.now_us,
            "compile_context": "N/A",
            "user_metadata": "",
        }
        if self._version >= (2, 12):
            entry["pool_id"] = pool_id
        if self.stack:
            entry["frames"] = [{"filename": "train.py", "line": 1, "name": self.stack}]
        self.entries.append(entry)
