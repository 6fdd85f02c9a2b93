"""Recorded jobs replayed through the model of the allocator: as they were, and as they might be."""

from vramscope_analysis.allocator import Version
from vramscope_analysis.replay.advice import Advice, advise, recommended
from vramscope_analysis.replay.capacity import Capacity
from vramscope_analysis.replay.capacity_inference import infer_capacity
from vramscope_analysis.replay.comparison import Mismatch
from vramscope_analysis.replay.past.initial_state import InferredState, InitialState, initial_state
from vramscope_analysis.replay.past.live_blocks import LiveBlock, live_blocks
from vramscope_analysis.replay.prediction import predict
from vramscope_analysis.replay.prediction_result import End, Moment, OutOfMemory, Prediction
from vramscope_analysis.replay.recorded_replay import RecordedReplay
from vramscope_analysis.replay.recording import Events, Recording
from vramscope_analysis.replay.replaying import ReplayReport, replay_recorded
from vramscope_analysis.replay.steps import Annotation, Steps

__all__ = [
    "Advice",
    "Annotation",
    "Capacity",
    "End",
    "Events",
    "InferredState",
    "InitialState",
    "LiveBlock",
    "Mismatch",
    "Moment",
    "OutOfMemory",
    "Prediction",
    "RecordedReplay",
    "Recording",
    "ReplayReport",
    "Steps",
    "Version",
    "advise",
    "infer_capacity",
    "initial_state",
    "live_blocks",
    "predict",
    "recommended",
    "replay_recorded",
]
