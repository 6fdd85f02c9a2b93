"""What the replay of a recorded window said of other settings of the allocator."""

from __future__ import annotations

from dataclasses import dataclass

from vramscope_analysis.replay import Advice


@dataclass(frozen=True)
class SettingsTrial:
    """One set of options that the recorded window was replayed under.

    Args:
        text: value of ``PYTORCH_CUDA_ALLOC_CONF``; empty is PyTorch's defaults.
        is_recorded: these are the settings that the job had.
        peak_reserved_bytes: most that would have been held from the device.
        peak_allocated_bytes: most that blocks would have taken.
        gain_bytes: how much less than under the recorded settings; below 0 is more.
        retries: times that the whole cache would have been flushed for one request.
        more_device_allocs: calls of the driver for memory beyond those of the recorded settings.
        runs_out: whether the job would have run out of memory.
        is_worth_it: the gain is worth a change of settings.
        limit_is_assumed: it was tried under a memory limit that the job does not have.
    """

    text: str
    is_recorded: bool
    peak_reserved_bytes: int
    peak_allocated_bytes: int
    gain_bytes: int
    retries: int
    more_device_allocs: int
    runs_out: bool
    is_worth_it: bool
    limit_is_assumed: bool = False

    @classmethod
    def of(cls, advice: Advice) -> SettingsTrial:
        """What a replay under these settings gave."""
        prediction = advice.prediction
        return cls(
            text=advice.text,
            is_recorded=advice.candidate.is_recorded,
            peak_reserved_bytes=prediction.peak_reserved_bytes,
            peak_allocated_bytes=prediction.peak_allocated_bytes,
            gain_bytes=advice.gain_bytes,
            retries=prediction.retries,
            more_device_allocs=advice.more_device_allocs,
            runs_out=prediction.oom is not None,
            is_worth_it=advice.is_worth_it,
            limit_is_assumed=advice.candidate.limit_is_assumed,
        )
