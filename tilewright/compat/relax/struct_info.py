"""What is known of values: shapes and dtypes under relax's names, and the types that came before them."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tilewright.graph.ir.types import canonical, same
from tilewright.runtime.dtypes import dtype_string
from tilewright.support.errors import ArgumentError, described
from tilewright.support.registry import hook
from tilewright.tir import Expr, IntImm


def dims_of(values: Any) -> tuple[Expr, ...]:
    """Extents as expressions. Raises ArgumentError for what is no shape."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentError(f"{described(values)} is not a shape", "write (1, 784)")
    return tuple(d if isinstance(d, Expr) else IntImm(int(d)) for d in values)


class RelaxExpr:
    """An expression of relax. Expressions compare by identity; `struct_info` is what is known of the value."""
    __array_ufunc__ = None

    def __init__(self, info: StructInfo | None = None) -> None:
        self.struct_info_ = info

    @property
    def struct_info(self) -> Any:
        """What is known of the value. Raises ArgumentError where nothing is."""
        if self.struct_info_ is None:
            raise ArgumentError(f"nothing is known of the value of {self}", "emit it with BlockBuilder.emit")
        return self.struct_info_

    @property
    def shape_(self) -> Any:
        """The extents of a tensor; None where they are not known."""
        return getattr(self.struct_info_, "shape", None)

    @property
    def shape(self) -> Any:
        return self.struct_info.shape

    @property
    def dtype(self) -> Any:
        return self.struct_info.dtype

    @property
    def checked_type_(self) -> Any:
        return type_of(self.struct_info_)

    _checked_type_ = checked_type = checked_type_

    def same_as(self, other: object) -> bool:
        return self is other


class ShapeExpr(RelaxExpr):
    """A shape: its extents are expressions of tir."""

    def __init__(self, values: Any) -> None:
        self.values = dims_of(getattr(values, "values", values))
        super().__init__(ShapeStructInfo(self.values))

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Expr]:
        return iter(self.values)

    def __getitem__(self, at: Any) -> Any:
        return self.values[at]

    def __eq__(self, other: object) -> bool:
        given = getattr(other, "values", other)
        return isinstance(given, (tuple, list)) and len(given) == len(self) and all(map(_same, self.values,
                                                                                        dims_of(given)))

    def __hash__(self) -> int:
        return hash(len(self.values))

    def __str__(self) -> str:
        return f"R.shape([{', '.join(map(str, self.values))}])"

    __repr__ = __str__


class StructInfo:
    """What is known of a value."""

    def __str__(self) -> str:
        text: str = hook("relax.info_text")(self)
        return text

    __repr__ = __str__

    def same_as(self, other: object) -> bool:
        return self is other

    def is_base_of(self, other: StructInfo) -> bool:
        """True where every value that other describes is one that this describes."""
        return isinstance(other, type(self))


class ObjectStructInfo(StructInfo):
    """Nothing is known."""

    def is_base_of(self, other: StructInfo) -> bool:
        return True


class PrimStructInfo(StructInfo):
    """A number of a dtype."""

    def __init__(self, dtype: str = "int64", value: Any = None) -> None:
        self.dtype, self.value = dtype_string(dtype), value


class ShapeStructInfo(StructInfo):
    """A shape."""

    def __init__(self, values: Any = None, ndim: int = -1) -> None:
        self.values = None if values is None else dims_of(values)
        self.ndim = ndim if self.values is None else len(self.values)


class TensorStructInfo(StructInfo):
    """A tensor: its extents, or None and the number of axes (-1: not known); dtype "" is not known."""

    def __init__(self, shape: Any = None, dtype: Any = "float32", vdevice: Any = None, ndim: int = -1) -> None:
        self.dims = None if shape is None else dims_of(getattr(shape, "values", shape))
        self.dtype = dtype_string(dtype) if dtype else ""
        self.ndim = int(ndim) if self.dims is None else len(self.dims)
        self.vdevice = vdevice

    @property
    def shape(self) -> Any:
        """The extents as an expression; None where they are not known."""
        return None if self.dims is None else ShapeExpr(self.dims)

    def same_shape(self, other: TensorStructInfo) -> bool:
        if self.dims is None or other.dims is None:
            return self.dims is other.dims and self.ndim == other.ndim
        return len(self.dims) == len(other.dims) and all(map(_same, self.dims, other.dims))

    def is_base_of(self, other: StructInfo) -> bool:
        return isinstance(other, TensorStructInfo) and self.dtype in ("", other.dtype) and (
            self.same_shape(other) or (self.dims is None and self.ndim in (-1, other.ndim)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorStructInfo) and self.dtype == other.dtype and self.same_shape(other)

    def __hash__(self) -> int:
        return hash((self.dtype, self.ndim))


class TupleStructInfo(StructInfo):
    """A tuple of values."""

    def __init__(self, fields: Sequence[StructInfo]) -> None:
        self.fields = list(fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TupleStructInfo) and self.fields == other.fields

    def __hash__(self) -> int:
        return len(self.fields)


class FuncStructInfo(StructInfo):
    """A function."""

    def __init__(self, params: Sequence[StructInfo] | None, ret: StructInfo, purity: bool = True) -> None:
        self.params, self.ret, self.purity = None if params is None else list(params), ret, purity


class DynTensorType:
    """The type of a tensor before there were struct infos: how many axes, and the dtype."""

    def __init__(self, ndim: int = -1, dtype: Any = "float32") -> None:
        self.ndim, self.dtype = int(ndim), dtype_string(dtype) if dtype else ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DynTensorType) and (self.ndim, self.dtype) == (other.ndim, other.dtype)

    def __hash__(self) -> int:
        return hash((self.ndim, self.dtype))


class ObjectType:
    """The type of what is no tensor."""


class ShapeType:
    """The type of shapes."""


class TupleType:
    """The type of tuples."""

    def __init__(self, fields: Sequence[Any]) -> None:
        self.fields = list(fields)


def type_of(info: StructInfo | None) -> Any:
    """The type that a struct info had before."""
    if isinstance(info, TensorStructInfo):
        return DynTensorType(info.ndim, info.dtype)
    if isinstance(info, TupleStructInfo):
        return TupleType([type_of(f) for f in info.fields])
    return ShapeType() if isinstance(info, ShapeStructInfo) else None if info is None else ObjectType()


def info_of(shape: Any, kind: Any) -> StructInfo | None:
    """The struct info of `Var(name, shape, type)`, in the form of 2022, and of `Var(name, struct_info)`."""
    if isinstance(shape, StructInfo):
        return shape
    if isinstance(kind, StructInfo):
        return kind
    if isinstance(kind, TupleType):
        return TupleStructInfo([info_of(None, f) or ObjectStructInfo() for f in kind.fields])
    if isinstance(kind, DynTensorType) or shape is not None:
        dims = getattr(shape, "values", shape)
        known = kind if isinstance(kind, DynTensorType) else DynTensorType(-1, "float32")
        return TensorStructInfo(dims, known.dtype, ndim=known.ndim)
    return ShapeStructInfo() if isinstance(kind, ShapeType) else None


def _same(a: Expr, b: Expr) -> bool:
    return a is b or same(canonical(a), canonical(b))


NAMES: dict[str, Any] = {c.__name__: c for c in (
    StructInfo, ObjectStructInfo, PrimStructInfo, ShapeStructInfo, TensorStructInfo, TupleStructInfo, FuncStructInfo,
    DynTensorType, ObjectType, ShapeType, TupleType)}
