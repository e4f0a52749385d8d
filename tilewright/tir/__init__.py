"""The loop IR: types, expressions, buffers, statements, functions, printer, verifier and interpreter."""
from tilewright.tir import dtype, interp
from tilewright.tir.arithmetic import (
    absolute,
    all_of,
    any_of,
    binary,
    bitwise_not,
    ceildiv,
    floordiv,
    floormod,
    if_then_else,
    intrinsic,
    logical_not,
    maximum,
    minimum,
    negate,
    power,
    select,
    truncdiv,
    truncmod,
)
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer, decl_buffer, load, numel
from tilewright.tir.conversion import cast, const, convert, is_const, max_value, min_value
from tilewright.tir.equal import assert_structural_equal, structural_equal, structural_hash
from tilewright.tir.expr import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Expr,
    ExprOps,
    FloatImm,
    IntImm,
    Let,
    Not,
    Ramp,
    Select,
    StringImm,
    Var,
)
from tilewright.tir.interp import evaluate, run
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, OPAQUE, ORDERED, THREAD_INDEX, IterVar, Range
from tilewright.tir.llvm_intrinsics import (
    call_llvm_intrin,
    call_llvm_pure_intrin,
    llvm_lookup_intrinsic_id,
    register_llvm_intrinsic,
)
from tilewright.tir.low_bit import pack_int4, saturate_cast, unpack_int4
from tilewright.tir.node import Node, children, map_children, rewrite, rewrite_top_down, substitute, walk
from tilewright.tir.ops import BINARY, INTRINSICS
from tilewright.tir.printer import show
from tilewright.tir.stmt import (
    FOR_KINDS,
    NOP,
    PARALLEL,
    SERIAL,
    THREAD_BINDING,
    UNROLLED,
    VECTORIZED,
    Allocate,
    Block,
    BlockRealize,
    Evaluate,
    For,
    IfThenElse,
    IRModule,
    LetStmt,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    While,
    loop,
    range_of,
    seq,
)
from tilewright.tir.tensor_intrin import TensorIntrin
from tilewright.tir.verify import verify

__all__ = [
    "BINARY", "COMM_REDUCE", "DATA_PARALLEL", "FOR_KINDS", "INTRINSICS", "NOP", "OPAQUE", "ORDERED", "PARALLEL",
    "SERIAL", "THREAD_BINDING", "THREAD_INDEX", "UNROLLED", "VECTORIZED", "Allocate", "Binary", "Block",
    "BlockRealize", "Broadcast", "Buffer", "BufferRegion", "Call", "Cast", "Evaluate", "Expr", "ExprOps",
    "FloatImm", "For", "IRModule", "IfThenElse", "IntImm", "IterVar", "Let", "LetStmt", "Load", "MatchBuffer",
    "Node", "Not", "PrimFunc", "Ramp", "Range", "Select", "Seq", "Stmt", "Store", "StringImm", "TensorIntrin",
    "Var", "While", "absolute", "all_of", "any_of", "assert_structural_equal", "binary", "bitwise_not",
    "call_llvm_intrin", "call_llvm_pure_intrin", "cast", "ceildiv", "children", "const", "convert", "decl_buffer",
    "dtype", "evaluate", "floordiv", "floormod", "if_then_else", "interp", "intrinsic", "is_const",
    "llvm_lookup_intrinsic_id", "load", "logical_not", "loop", "map_children", "max_value", "maximum", "min_value",
    "minimum", "negate", "numel", "pack_int4", "power", "range_of", "register_llvm_intrinsic", "rewrite",
    "rewrite_top_down", "run", "saturate_cast", "select", "seq", "show", "structural_equal", "structural_hash",
    "substitute", "truncdiv", "truncmod", "unpack_int4", "verify", "walk",
]
