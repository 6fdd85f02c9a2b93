from __future__ import annotations

import json
from dataclasses import asdict

from tests.support.recorded_job import MIB, START_US, RecordedJob
from vramscope_analysis.allocator import AllocatorSettings
from vramscope_analysis.replay.prediction import predict
from vramscope_analysis.replay.prediction_result import End, Moment, OutOfMemory


def test_what_is_predicted_is_plain_numbers() -> None:
    job = RecordedJob()
    job.malloc(30 * MIB)
    job.step()
    job.malloc(40 * MIB)

    prediction = predict(job.recording(), AllocatorSettings(), capacity_bytes=64 * MIB)

    moment = Moment(event=3, time_us=START_US + 3, step=1)
    assert prediction.end == End(moment, "out_of_memory")
    assert prediction.oom == OutOfMemory(
        **asdict(moment),
        requested_bytes=40 * MIB,
        segment_bytes=40 * MIB,
        reserved_bytes=30 * MIB,
        allocated_bytes=30 * MIB,
        allowed_bytes=64 * MIB,
        needed_bytes=70 * MIB,
    )
    assert prediction.peak == Moment(event=1, time_us=START_US + 1, step=0)
    assert json.loads(json.dumps(asdict(prediction.end))) == {
        "at": {"event": 3, "time_us": START_US + 3, "step": 1},
        "reason": "out_of_memory",
    }
