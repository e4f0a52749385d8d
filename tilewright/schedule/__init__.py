"""Schedules: one file per family of primitives on the one Schedule."""
from tilewright.schedule import annotations, cache, compute_at, inline, layout, loops, reduction, scopes, stages
from tilewright.schedule.primitive import PRIMITIVES, primitive, replay
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.schedule.trace import Entry, Trace

__all__ = ["PRIMITIVES", "BlockRV", "Entry", "LoopRV", "Schedule", "Trace", "annotations", "cache", "compute_at",
           "inline", "layout", "loops", "primitive", "reduction", "replay", "scopes", "stages"]
