"""The loop IR: types, expressions, buffers, statements, functions, printer, verifier and interpreter."""
from tilewright.tir import arithmetic, dtype, expr, interp, llvm_intrinsics, stmt
from tilewright.tir.arithmetic import *  # noqa: F403
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer, decl_buffer, load, numel
from tilewright.tir.conversion import cast, const, convert, is_const, max_value, min_value
from tilewright.tir.equal import assert_structural_equal, structural_equal, structural_hash
from tilewright.tir.expr import *  # noqa: F403
from tilewright.tir.interp import evaluate, run
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, OPAQUE, ORDERED, THREAD_INDEX, IterVar, Range
from tilewright.tir.llvm_intrinsics import *  # noqa: F403
from tilewright.tir.low_bit import pack_int4, saturate_cast, unpack_int4
from tilewright.tir.node import Node, children, map_children, rewrite, rewrite_top_down, substitute, walk
from tilewright.tir.ops import BINARY, INTRINSICS
from tilewright.tir.printer import show
from tilewright.tir.stmt import *  # noqa: F403
from tilewright.tir.tensor_intrin import TensorIntrin
from tilewright.tir.verify import verify

__all__ = [
    "BINARY", "Buffer", "BufferRegion", "COMM_REDUCE", "DATA_PARALLEL", "INTRINSICS", "IterVar", "Load",
    "MatchBuffer", "Node", "OPAQUE", "ORDERED", "Range", "THREAD_INDEX", "TensorIntrin", "assert_structural_equal",
    "cast", "children", "const", "convert", "decl_buffer", "dtype", "evaluate", "interp", "is_const", "load",
    "map_children", "max_value", "min_value", "numel", "pack_int4", "rewrite", "rewrite_top_down", "run",
    "saturate_cast", "show", "structural_equal", "structural_hash", "substitute", "unpack_int4", "verify", "walk",
]
__all__ += arithmetic.__all__ + expr.__all__ + llvm_intrinsics.__all__ + stmt.__all__
