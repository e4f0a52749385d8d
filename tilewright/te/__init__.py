"""Tensor expressions: what to compute, element by element, without saying in which order."""
from typing import Any as _Any

from tilewright.support.errors import no_attribute as _no_attribute
from tilewright.te import hybrid as hybrid
from tilewright.te import math as _math
from tilewright.te import tensor_arithmetic as _tensor_arithmetic  # noqa: F401 - arithmetic of tensors
from tilewright.te.constant import ConstantOp, constant
from tilewright.te.definition import (
    compute,
    create_schedule,
    extern,
    placeholder,
    size_var,
    thread_axis,
    var,
)
from tilewright.te.intrin.call import TensorComputeOp
from tilewright.te.intrin.declaration import TensorIntrin, decl_tensor_intrin
from tilewright.te.math import (
    abs,
    acos,
    all,
    any,
    asin,
    atan,
    atan2,
    call_extern,
    call_packed,
    ceil,
    clz,
    copysign,
    cos,
    cosh,
    div,
    erf,
    exp,
    exp2,
    exp10,
    expm1,
    fabs,
    floor,
    fma,
    fmod,
    infinity,
    isfinite,
    isinf,
    isnan,
    likely,
    log,
    log1p,
    log2,
    log10,
    nearbyint,
    popcount,
    pow,
    power,
    reinterpret,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)
from tilewright.te.operation import ComputeOp, ExternOp, PlaceholderOp, post_order
from tilewright.te.prim_func import create_prim_func, lower_ops
from tilewright.te.reduction import (
    CommReducer,
    Reduce,
    Reducer,
    comm_reducer,
    max,
    min,
    prod,
    reduce_axis,
    sum,
)
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
    "AXIS_SEPARATOR", "CommReducer", "ComputeOp", "ConstantOp", "ExternOp", "IterVar", "Operation", "PlaceholderOp",
    "Range", "Reduce", "Reducer", "ScanOp", "Select", "Tensor", "TensorComputeOp", "TensorIntrin", "TensorRead",
    "TensorSlice", "Var", "abs", "acos", "all", "any", "asin", "atan", "atan2", "call_extern", "call_llvm_intrin",
    "call_llvm_pure_intrin", "call_packed", "cast", "ceil", "ceildiv", "clz", "comm_reducer", "compute", "const",
    "constant", "copysign", "cos", "cosh", "create_prim_func", "create_schedule", "decl_tensor_intrin", "div", "erf",
    "exp", "exp10", "exp2", "expm1", "extern", "fabs", "floor", "floordiv", "floormod", "fma", "fmod", "if_then_else",
    "infinity", "isfinite", "isinf", "isnan", "likely", "log", "log10", "log1p", "log2", "logical_not", "lower_ops",
    "max", "max_value", "maximum", "min", "min_value", "minimum", "nearbyint", "pack_int4", "placeholder", "popcount",
    "post_order", "pow", "power", "prod", "reduce_axis", "reinterpret", "round", "rsqrt", "saturate_cast", "scan",
    "select", "sigmoid", "sin", "sinh", "size_var", "sqrt", "sum", "tag_scope", "tan", "tanh", "thread_axis", "trunc",
    "truncdiv", "truncmod", "unpack_int4", "var",
]

# Functions of the operator table that have no line above.
_MORE = {name: function for name, function in _math.FUNCTIONS.items() if name not in globals()}
globals().update(_MORE)
__all__ += list(_MORE)


def _absent(name: str) -> _Any:
    raise _no_attribute("te", name, __all__, "te.")


globals()["__getattr__"] = _absent        # no `def __getattr__`: to type checkers te would then have every name
