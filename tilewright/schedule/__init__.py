"""Schedules: one file per family of primitives on the one Schedule."""
from tilewright.schedule import intrinsics, primitives, stages
from tilewright.schedule.primitive import PRIMITIVES, primitive
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, ExprRV, LoopRV
from tilewright.schedule.trace import Entry, Trace, replay

__all__ = ["PRIMITIVES", "BlockRV", "Entry", "ExprRV", "LoopRV", "Schedule", "Trace", "intrinsics", "primitive",
           "primitives", "replay", "stages"]
