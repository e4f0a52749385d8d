"""Schedules: one file per family of primitives on the one Schedule."""
from tilewright.schedule import intrinsics, stages
from tilewright.schedule.primitive import PRIMITIVES, primitive, replay
from tilewright.schedule.primitives import (
    annotations,
    block_axes,
    block_layout,
    blockize,
    cache,
    cache_index,
    cache_inplace,
    compute_at,
    dtypes,
    einsum,
    inline,
    layout,
    loops,
    padding,
    partition,
    prefetch,
    read_write_at,
    reduction,
    reindex,
    reverse_inline,
    rfactor,
    rolling,
    sampling,
    scopes,
    storage,
    tensorize,
)
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, ExprRV, LoopRV
from tilewright.schedule.trace import Entry, Trace

__all__ = [
    "PRIMITIVES", "BlockRV", "Entry", "ExprRV", "LoopRV", "Schedule", "Trace", "annotations", "block_axes",
    "block_layout", "blockize", "cache", "cache_inplace", "cache_index", "compute_at",
    "dtypes", "einsum", "inline", "intrinsics", "layout", "loops", "padding", "partition",
    "prefetch", "primitive", "read_write_at",
    "reduction", "replay", "reindex", "reverse_inline", "rfactor", "rolling", "sampling", "scopes", "stages", "storage",
    "tensorize",
]
