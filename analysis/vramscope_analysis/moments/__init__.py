"""Moments of a recording: what was live when, where it came from, and what grew in between."""

from vramscope_analysis.moments.category import Category
from vramscope_analysis.moments.groups import By, Group
from vramscope_analysis.moments.growth import Growth, GrowthBetween, growth_between
from vramscope_analysis.moments.moment import Held, LiveBlock, Moment, moment_of
from vramscope_analysis.moments.recorded_memory import RecordedMemory
from vramscope_analysis.moments.stack_tree import Node, stack_tree
from vramscope_analysis.moments.step_ends import Scope, StepEnd
from vramscope_analysis.moments.timeline import Timeline, timeline_of

__all__ = [
    "By",
    "Category",
    "Group",
    "Growth",
    "GrowthBetween",
    "Held",
    "LiveBlock",
    "Moment",
    "Node",
    "RecordedMemory",
    "Scope",
    "StepEnd",
    "Timeline",
    "growth_between",
    "moment_of",
    "stack_tree",
    "timeline_of",
]
