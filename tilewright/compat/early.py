"""Modules that TVM had up to 0.6: `tvm.expr`, `tvm.stmt`, `tvm.make`, `tvm.tensor`, `tvm.ir_pass`; helpers of topi."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright import te, tir
from tilewright.compat import nodes, stmt_functor
from tilewright.compat.arith.analyzer import Analyzer
from tilewright.support.errors import ArgumentError, described
from tilewright.te.operation import ComputeOp, ExternOp, PlaceholderOp
from tilewright.te.scan import ScanOp
from tilewright.te.tensor import Operation, TensorSlice


def make_call(dtype: str, name: str, args: Iterable[Any], call_type: int = 0, func: Any = None,
              value_index: int = 0) -> tir.Expr:
    """make.Call of TVM 0.6, of a function that our table of intrinsics has."""
    return nodes.call_intrin(dtype, name, *args)


def get_const_int(value: Any) -> int:
    """The integer that an expression is. Raises ArgumentError where it is none."""
    e = tir.convert(value)
    if not isinstance(e, tir.IntImm):
        raise ArgumentError(f"get_const_int: {described(value)} is not a constant integer")
    return e.value


def get_const_tuple(shape: Iterable[Any]) -> tuple[Any, ...]:
    """The extents as Python integers; symbolic ones stay as they are."""
    extents = [tir.convert(x) for x in shape]
    return tuple(e.value if isinstance(e, tir.IntImm) else e for e in extents)


def simplify(e: Any) -> tir.Expr:
    """ir_pass.Simplify of an expression. Raises ArgumentError for statements: tvm.lower simplifies these."""
    if isinstance(e, tir.Stmt):
        raise ArgumentError("ir_pass.Simplify takes an expression", "tvm.lower simplifies statements")
    return Analyzer().simplify(e)


_LEAVES = {"Var": tir.Var, "SizeVar": tir.Var, "StringImm": tir.StringImm, **nodes.LITERALS}
_VALUES = {name: nodes.NODES[name] for name in ("Select", "Ramp", "Broadcast", "Let", "Not", "Shuffle")}
_STATEMENTS = {name: nodes.NODES[name] for name in ("LetStmt", "AssertStmt", "IfThenElse", "Evaluate")}

EXPR: dict[str, Any] = {**_LEAVES, **_VALUES, **nodes.OPERATORS, "Reduce": te.Reduce, "Load": tir.Load,
                        "Expr": tir.Expr, "PrimExpr": tir.Expr, "ExprOp": tir.ExprOps}
STMT: dict[str, Any] = {**_STATEMENTS, "For": nodes.NODES["For"], "Store": tir.Store, "Allocate": tir.Allocate,
                        "Block": tir.Seq, "Stmt": tir.Stmt, "stmt_seq": lambda *stmts: tir.seq(stmts),
                        "stmt_list": nodes.FUNCTIONS["stmt_list"]}
MAKE: dict[str, Any] = {**_LEAVES, **_VALUES, **_STATEMENTS, **nodes.OPERATORS, "For": nodes.NODES["For"],
                        "Call": make_call,
                        "Block": lambda first, rest: tir.seq((first, rest)),
                        "range_by_min_extent": lambda low, extent: tir.Range(tir.convert(low), tir.convert(extent))}
TENSOR: dict[str, Any] = {"Tensor": te.Tensor, "TensorSlice": TensorSlice, "Operation": Operation,
                          "PlaceholderOp": PlaceholderOp, "ComputeOp": ComputeOp, "ScanOp": ScanOp,
                          "ExternOp": ExternOp, "TensorComputeOp": te.TensorComputeOp}
IR_PASS: dict[str, Any] = {"Simplify": simplify, "CanonicalSimplify": simplify, "Equal": tir.structural_equal,
                           "PostOrderVisit": stmt_functor.post_order_visit, "IRTransform": stmt_functor.ir_transform,
                           "Substitute": stmt_functor.substitute}
TOPI_UTILS: dict[str, Any] = {"get_const_tuple": get_const_tuple, "get_const_int": get_const_int}
