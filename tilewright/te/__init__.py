"""Tensor expressions: what to compute, element by element, without saying in which order."""
from typing import Any as _Any

from tilewright.support.errors import no_attribute as _no_attribute
from tilewright.te import definition, reduction
from tilewright.te import hybrid as hybrid
from tilewright.te import math as _math
from tilewright.te import tensor_arithmetic as _tensor_arithmetic  # noqa: F401 - arithmetic of tensors
from tilewright.te.constant import ConstantOp, constant
from tilewright.te.definition import *  # noqa: F403
from tilewright.te.intrin.call import TensorComputeOp
from tilewright.te.intrin.declaration import TensorIntrin, decl_tensor_intrin
from tilewright.te.math import *  # noqa: F403
from tilewright.te.operation import ComputeOp, ExternOp, PlaceholderOp, post_order
from tilewright.te.prim_func import create_prim_func, lower_ops
from tilewright.te.reduction import *  # noqa: F403
from tilewright.te.scan import ScanOp, scan
from tilewright.te.tag import tag_scope
from tilewright.te.tensor import Operation, Tensor, TensorRead, TensorSlice
from tilewright.tir.arithmetic import (
    ceildiv,
    floordiv,
    floormod,
    if_then_else,
    logical_not,
    maximum,
    minimum,
    select,
    truncdiv,
    truncmod,
)
from tilewright.tir.conversion import cast, const, max_value, min_value
from tilewright.tir.expr import Select, Var
from tilewright.tir.iter_var import AXIS_SEPARATOR, IterVar, Range
from tilewright.tir.llvm_intrinsics import call_llvm_intrin, call_llvm_pure_intrin
from tilewright.tir.low_bit import pack_int4, saturate_cast, unpack_int4

__all__ = [
    "AXIS_SEPARATOR", "ComputeOp", "ConstantOp", "ExternOp", "IterVar", "Operation", "PlaceholderOp", "Range",
    "ScanOp", "Select", "Tensor", "TensorComputeOp", "TensorIntrin", "TensorRead", "TensorSlice", "Var",
    "call_llvm_intrin", "call_llvm_pure_intrin", "cast", "ceildiv", "const", "constant", "create_prim_func",
    "decl_tensor_intrin", "floordiv", "floormod", "if_then_else", "logical_not", "lower_ops", "max_value",
    "maximum", "min_value", "minimum", "pack_int4", "post_order", "saturate_cast", "scan", "select", "tag_scope",
    "truncdiv", "truncmod", "unpack_int4",
]
__all__ += definition.__all__ + _math.__all__ + reduction.__all__


def _absent(name: str) -> _Any:
    raise _no_attribute("te", name, __all__, "te.")


globals()["__getattr__"] = _absent        # no `def __getattr__`: to type checkers te would then have every name
