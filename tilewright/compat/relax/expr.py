"""Relax's nodes: trees of expressions in functions of bindings, as programs of TVM build and visit them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright import runtime
from tilewright.compat.relax.struct_info import (
    DynTensorType,
    FuncStructInfo,
    ObjectStructInfo,
    RelaxExpr,
    ShapeExpr,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    info_of,
)
from tilewright.runtime import Tensor
from tilewright.runtime.dtypes import dtype_string, numpy_dtype
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import ArgumentError, described
from tilewright.support.registry import hook
from tilewright.tir.functions import BaseFunc, GlobalVar, ModuleText


class Expr(RelaxExpr):
    """An expression with operators: x + y, x[0] of a tuple."""

    def __add__(self, other: Any) -> Any:
        return hook("relax.binary")("relax.add", self, other)

    def __radd__(self, other: Any) -> Any:
        return hook("relax.binary")("relax.add", other, self)

    def __sub__(self, other: Any) -> Any:
        return hook("relax.binary")("relax.subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return hook("relax.binary")("relax.subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return hook("relax.binary")("relax.multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return hook("relax.binary")("relax.multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return hook("relax.binary")("relax.divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return hook("relax.binary")("relax.divide", other, self)

    def __neg__(self) -> Any:
        return hook("relax.binary")("relax.negative", self)

    def __getitem__(self, index: int) -> Any:
        fields = self.fields if isinstance(self, Tuple) else getattr(self.struct_info_, "fields", None)
        if fields is not None and not -len(fields) <= index < len(fields):
            raise IndexError(f"the tuple has {len(fields)} fields, not one number {index}")
        return fields[index] if isinstance(self, Tuple) and fields else TupleGetItem(self, index)

    def __str__(self) -> str:
        text: str = hook("relax.text")(self)
        return text

    __repr__ = __str__


class Var(Expr):
    """A variable: Var(name, struct_info), or in the form of 2022 Var(name, shape, type)."""

    def __init__(self, name_hint: Any, shape_annotation: Any = None, type_annotation: Any = None,
                 span: Any = None) -> None:
        super().__init__(info_of(shape_annotation, type_annotation))
        self.name_hint = str(getattr(name_hint, "name_hint", name_hint))

    @property
    def vid(self) -> Var:
        """What has the name."""
        return self


class DataflowVar(Var):
    """A variable of a dataflow block."""


class Constant(Expr):
    """An array."""

    def __init__(self, data: Any, struct_info: StructInfo | None = None) -> None:
        self.data: Tensor = data if isinstance(data, Tensor) else runtime.array(data)
        super().__init__(struct_info or TensorStructInfo(self.data.shape, self.data.dtype))

    @property
    def array(self) -> np.ndarray:
        """The array as NumPy has it."""
        return as_numpy(self.data)


class PrimValue(Expr):
    """A number."""

    def __init__(self, value: Any) -> None:
        super().__init__(ObjectStructInfo())
        self.value = value


class StringImm(Expr):
    """A text."""

    def __init__(self, value: str) -> None:
        super().__init__(ObjectStructInfo())
        self.value = value


class DataTypeImm(StringImm):
    """A dtype."""


class ExternFunc(Expr):
    """A packed function of the registry."""

    def __init__(self, global_symbol: str, struct_info: StructInfo | None = None) -> None:
        super().__init__(struct_info or ObjectStructInfo())
        self.global_symbol = str(global_symbol)

    @property
    def name(self) -> str:
        return self.global_symbol


class Tuple(Expr):
    """Several values as one."""

    def __init__(self, fields: Sequence[Any]) -> None:
        self.fields = list(fields)
        infos = [getattr(f, "struct_info_", None) for f in self.fields]
        super().__init__(TupleStructInfo([i for i in infos if i is not None]) if None not in infos else None)

    def __len__(self) -> int:
        return len(self.fields)


class TupleGetItem(Expr):
    """A field of a tuple."""

    def __init__(self, tuple_value: Any, index: int) -> None:
        known = getattr(tuple_value.struct_info_, "fields", None)
        super().__init__(known[int(index)] if known else None)
        self.tuple_value, self.index = tuple_value, int(index)


class Call(Expr):
    """op(args): an operator, a function of the module by its GlobalVar, an ExternFunc, or a function."""

    def __init__(self, op: Any, args: Sequence[Any], attrs: Any = None, sinfo_args: Any = None,
                 type_args: Any = None) -> None:
        super().__init__()
        self.op = ExternFunc(op) if type(op) is str else op
        self.args = list(args.fields if isinstance(args, Tuple) else args)
        self.attrs: Mapping[str, Any] = dict(attrs or {})
        self.sinfo_args = list(sinfo_args or ())


class If(Expr):
    """One of two branches."""

    def __init__(self, cond: Any, true_branch: Any, false_branch: Any) -> None:
        super().__init__()
        self.cond, self.true_branch, self.false_branch = cond, true_branch, false_branch


class VarBinding:
    """var = value"""

    def __init__(self, var: Var, value: Any) -> None:
        self.var, self.value = var, value


class MatchCast(VarBinding):
    """var = value, which is of a struct info that is stated."""

    def __init__(self, var: Var, value: Any, struct_info: StructInfo) -> None:
        super().__init__(var, value)
        self.struct_info = struct_info


class BindingBlock:
    """Bindings, one after the other."""

    def __init__(self, bindings: Sequence[VarBinding]) -> None:
        self.bindings = list(bindings)


class DataflowBlock(BindingBlock):
    """Bindings without effects."""


class SeqExpr(Expr):
    """Blocks of bindings, and then a value."""

    def __init__(self, blocks: Sequence[BindingBlock], body: Any) -> None:
        super().__init__(getattr(body, "struct_info_", None))
        self.blocks, self.body = list(blocks), body


class Function(Expr, BaseFunc):
    """(params) -> body"""

    def __init__(self, params: Sequence[Var], body: Any, ret_struct_info: StructInfo | None = None,
                 is_pure: bool = True, attrs: Mapping[str, Any] | None = None) -> None:
        self.params = list(params)
        self.body = body if isinstance(body, SeqExpr) else SeqExpr([], body)
        self.ret_struct_info = ret_struct_info or self.body.struct_info_ or ObjectStructInfo()
        self.is_pure, self.attrs = is_pure, dict(attrs or {})
        super().__init__(FuncStructInfo([p.struct_info_ or ObjectStructInfo() for p in self.params],
                                        self.ret_struct_info, is_pure))

    @property
    def name(self) -> str:
        return str(self.attrs.get("global_symbol", "main"))

    def replace(self, **changes: Any) -> Function:
        """A copy with other fields."""
        fields = {"params": self.params, "body": self.body, "ret_struct_info": self.ret_struct_info,
                  "is_pure": self.is_pure, "attrs": self.attrs}
        return Function(**{**fields, **changes})

    def with_attr(self, key: Any, value: Any = None) -> Function:
        """This function with an attribute, or with those of a dict."""
        return self.replace(attrs={**self.attrs, **(key if isinstance(key, Mapping) else {key: value})})

    def without_attr(self, key: str) -> Function:
        return self.replace(attrs={k: v for k, v in self.attrs.items() if k != key})

    with_attrs = with_attr

    def lines_in(self, name: str, module: ModuleText) -> list[str]:
        found: list[str] = hook("relax.lines")(self, name, module)
        return found

    __str__ = BaseFunc.script                                                # type: ignore[assignment]
    __repr__ = __str__


def const(value: Any, dtype: Any = None) -> Constant:
    """An array or number as an expression; dtype may be the type of a tensor, in the form of 2022."""
    wanted = dtype.dtype if isinstance(dtype, (DynTensorType, TensorStructInfo)) else dtype
    array = as_numpy(value) if isinstance(value, Tensor) else np.asarray(value)
    if wanted is None and not isinstance(value, (Tensor, np.ndarray, np.generic)):
        wanted = {"f": "float32", "i": "int32"}.get(array.dtype.kind)
    return Constant(array if wanted is None else array.astype(numpy_dtype(dtype_string(wanted))))


def extern(name: str) -> ExternFunc:
    """A packed function of the registry, by its name."""
    return ExternFunc(name)


def as_expr(x: Any, like: Any = None) -> Any:
    """x as an expression; a number is a constant of the dtype of `like`. Raises ArgumentError."""
    if isinstance(x, (RelaxExpr, GlobalVar)):
        return x
    if isinstance(x, (list, tuple)):
        return Tuple([as_expr(y, like) for y in x])
    if isinstance(x, (bool, int, float, np.generic, np.ndarray, Tensor)):
        known = getattr(getattr(like, "struct_info_", None), "dtype", None)
        return const(x, known if isinstance(x, (int, float)) and not isinstance(x, bool) else None)
    raise ArgumentError(f"{described(x)} is no expression of relax", "relax.const(array) makes one")


NAMES: dict[str, Any] = {c.__name__: c for c in (
    Expr, Var, DataflowVar, Constant, PrimValue, StringImm, DataTypeImm, ExternFunc, Tuple, TupleGetItem, Call, If,
    VarBinding, MatchCast, BindingBlock, DataflowBlock, SeqExpr, Function)}
NAMES |= {"ShapeExpr": ShapeExpr, "GlobalVar": GlobalVar, "const": const, "extern": extern, "Binding": VarBinding,
          "RelayExpr": Expr}
