"""What the names of T stand for, and the values that only a parser sees."""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.script import usage
from tilewright.support.errors import ArgumentError, ScriptError, described
from tilewright.support.target import Target
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import KINDS_OF_SCOPES, Buffer, decl_buffer, is_scope
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Cast, Expr, FloatImm, Var
from tilewright.tir.node import Node

_TEXTS = re.compile("[+-]?(nan|inf)")             # of constants of float types


def _document(thing: Any, text: str) -> None:
    """Make text what `help(thing)` shows."""
    object.__setattr__(thing, "__doc__", text)
    object.__setattr__(thing, "__name__", f"T.{thing.name}")


@dataclass(frozen=True, repr=False)
class Form:
    """A name of T that shapes statements (`T.grid`, `T.block`, `T.reads`); it means nothing elsewhere."""
    name: str

    def __post_init__(self) -> None:
        _document(self, usage.FORMS.get(self.name, f"T.{self.name}(...)"))

    def __repr__(self) -> str:
        return f"T.{self.name}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise ScriptError(f"T.{self.name} was called outside a script",
                          "it stands in the body of a function under @T.prim_func")


@dataclass(frozen=True)
class Group:
    """A name of T with names below it: T.axis."""
    name: str
    members: dict[str, Any]

    def __post_init__(self) -> None:
        _document(self, usage.of_group(self.name, self.members))


@dataclass(frozen=True, repr=False)
class Function:
    """A name of T that gives an expression."""
    name: str
    fn: Callable[..., Any]

    def __post_init__(self) -> None:
        _document(self, usage.of_function(self.name, self.fn))

    def __repr__(self) -> str:
        return f"T.{self.name}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.fn(*args, **kwargs)
        except TypeError as why:
            self.check_arguments(args, kwargs)
            raise why

    def check_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise ArgumentError, in the name that the script uses, where fn has no such parameters."""
        try:
            signature = inspect.signature(self.fn)
        except (TypeError, ValueError):                 # a function of Python itself that tells nothing
            return
        try:
            signature.bind(*args, **kwargs)
        except TypeError as why:
            usage = ", ".join(str(p.replace(annotation=p.empty)) for p in signature.parameters.values())
            raise ArgumentError(f"T.{self.name}({usage}): {why}") from None


@dataclass(frozen=True)
class Fresh:
    """A new variable that has no name yet: the value of `T.int32()`."""
    dtype: str


@dataclass(frozen=True)
class Meta:
    """T.meta_var(x): x itself, where an assignment would otherwise bind a variable to it."""
    value: Any


@dataclass(frozen=True)
class Pointer:
    """T.handle("float32", "shared"): the type of a parameter that is the address of elements."""
    dtype: str
    scope: str = "global"


def pointer_type(dtype: Any, storage_scope: str = "global") -> Pointer:
    """T.handle(dtype, storage_scope), T.Ptr(dtype, storage_scope). Raises ScriptError for what is no dtype or scope."""
    if not is_scope(storage_scope or "global"):
        raise ScriptError(f"{described(storage_scope)} is not a storage scope", KINDS_OF_SCOPES)
    return Pointer(dtype.name if isinstance(dtype, DType) else dt.canonical(dtype), storage_scope or "global")


@dataclass(frozen=True, repr=False)
class DType:
    """T.int32: a parameter's annotation, the constructor of constants, a cast of expressions."""
    name: str

    def __post_init__(self) -> None:
        _document(self, usage.of_dtype(self.name))

    def __repr__(self) -> str:
        return f"T.{self.name}"

    def __eq__(self, other: object) -> bool:
        """True for the same type, also by its name, which is what the dtype of a buffer is."""
        return self.name == (other.name if isinstance(other, DType) else other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __call__(self, value: Any = None, storage_scope: str = "global", *, is_size_var: bool = False) -> Any:
        """A constant or a cast; a new variable without a value, be it an extent or not, and for a pointer, of whose
        contents the type is given."""
        x = None if value is None else self.of(value, storage_scope)
        return Var("v", self.name) if x is None or isinstance(x, Pointer) else x

    def of(self, value: Any, storage_scope: str = "global") -> Any:
        """value as this type: numbers and "nan", "inf" become constants, expressions are cast."""
        if self.name == "handle" and isinstance(value, (str, DType)):
            return pointer_type(value, storage_scope)
        if isinstance(value, Expr):
            return cast(self.name, value)
        if isinstance(value, str):
            if not dt.is_float(self.name) or not _TEXTS.fullmatch(value):
                raise ScriptError(f"T.{self.name}({value!r}) is no constant",
                                  'the texts are "nan", "inf" and "-inf", of the float types')
            return FloatImm(float(value), self.name)
        return const(value, self.name)


@dataclass(frozen=True)
class BufferType:
    """T.Buffer(...): everything about a buffer but its name."""
    shape: tuple[Any, ...]
    dtype: str = "float32"
    data: Any = None
    strides: tuple[Any, ...] = ()
    elem_offset: Any = None
    scope: str = "global"
    align: int = 64
    offset_factor: int = 0
    axis_separators: tuple[int, ...] = ()

    def named(self, name: str) -> Buffer:
        """A new buffer of this type."""
        shape = [_extent(e, f"{name}_d{k}") for k, e in enumerate(self.shape)]
        strides = [_extent(e, f"{name}_s{k}") for k, e in enumerate(self.strides)]
        offset = _extent(self.elem_offset, f"{name}_elem_offset")
        buffer = decl_buffer(shape, self.dtype, name, strides=strides, elem_offset=offset, scope=self.scope,
                             data_alignment=self.align, offset_factor=self.offset_factor)
        data = self.data.data if isinstance(self.data, Buffer) else self.data
        extra = {"axis_separators": self.axis_separators} if self.axis_separators else {}
        return buffer.replace(data=buffer.data if data is None else data, **extra)


def _extent(e: Any, name: str) -> Any:
    """An extent, stride or offset; a new variable for Fresh and for a text, which is its name."""
    if isinstance(e, Fresh):
        return Var(name, e.dtype)
    return Var(e, "int32") if isinstance(e, str) else e


def buffer_type(shape: Any, dtype: Any = "float32", data: Any = None, strides: Any = None, elem_offset: Any = ...,
                scope: str = "global", align: int = 64, offset_factor: int = 0, buffer_type: str = "",
                axis_separators: Sequence[int] | None = None) -> BufferType:
    """The arguments of T.Buffer, T.alloc_buffer, T.match_buffer and T.decl_buffer.

    Where only a factor of the offset is said, the offset is a new variable.
    """
    if elem_offset is ...:
        elem_offset = Fresh("int32") if offset_factor else None
    if buffer_type not in ("", "default"):
        raise ScriptError(f"buffer_type={buffer_type!r} is not supported")
    for what, number in (("align", align), ("offset_factor", offset_factor)):
        if not _is_integer(number):
            raise ScriptError(f"{what}={described(number)} is not an integer")
    given = axis_separators or ()
    separators = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if not all(map(_is_integer, separators)):
        raise ScriptError(f"axis_separators={described(axis_separators)} is not a list of integers")
    return BufferType(as_extents(shape, "shape"), dtype.name if isinstance(dtype, DType) else dt.canonical(dtype), data,
                      as_extents(strides or (), "strides"), elem_offset, scope or "global", align if align > 0 else 64,
                      offset_factor, tuple(map(int, separators)))


_PARAMETERS = inspect.signature(buffer_type)


def typed(what: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BufferType:
    """The type that the arguments of T.Buffer or of another name, `what`, say. Raises ScriptError."""
    try:
        return buffer_type(*args, **kwargs)
    except TypeError:
        try:
            _PARAMETERS.bind(*args, **kwargs)
        except TypeError as why:
            raise ScriptError(f"{what}: {why}", f'{what}((16, 16), "float32")') from None
        raise


def _is_integer(x: Any) -> bool:
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def as_extents(x: Any, what: str) -> tuple[Any, ...]:
    items = tuple(x) if isinstance(x, (tuple, list)) else (x,)
    for item in items:
        if not isinstance(item, (Fresh, str)):
            if not dt.is_integer(convert(item).dtype):
                raise ScriptError(f"{described(item)} in {what} is not an integer")
    return items


def is_annotation(x: Any) -> bool:
    """True for the values that annotations have: texts, numbers, None, IR, and lists and dicts of these."""
    if isinstance(x, (list, tuple)):
        return all(map(is_annotation, x))
    if isinstance(x, dict):
        return all(is_annotation(v) for pair in x.items() for v in pair)
    return x is None or isinstance(x, (str, bool, int, float, np.number, Node, Target))


class BufferSyntax:
    """T.Buffer: `T.Buffer((4, 4), "int64")` and `T.Buffer[(4, 4), "int64"]`."""
    name = "Buffer"

    def __init__(self) -> None:
        _document(self, usage.BUFFER)

    def __repr__(self) -> str:
        return "T.Buffer"

    def __call__(self, /, *args: Any, **kwargs: Any) -> BufferType:
        return typed("T.Buffer", args, kwargs)

    def __getitem__(self, item: Any) -> BufferType:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], (str, DType)):
            return buffer_type(*item)
        return buffer_type(item)


def cast_as_written(dtype: Any, value: Any) -> Expr:
    """T.Cast(dtype, value): the node itself, also where the types are equal or the value is a constant."""
    return Cast(dtype.name if isinstance(dtype, DType) else dt.canonical(dtype), convert(value))
