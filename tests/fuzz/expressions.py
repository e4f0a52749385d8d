"""Expressions of random programs: each node builds its tensor expression and evaluates itself with NumPy."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright import te

from . import values
from .values import Reject, Value


@dataclass(frozen=True)
class Dim:
    """The extent scale * symbol + offset; symbol "" for the constant offset."""
    symbol: str = ""
    scale: int = 0
    offset: int = 0

    def value(self, sizes: Mapping[str, int]) -> int:
        return self.offset + (self.scale * sizes[self.symbol] if self.symbol else 0)

    def build(self, variables: Mapping[str, Any]) -> Any:
        if not self.symbol:
            return self.offset
        out = variables[self.symbol]
        if self.scale != 1:
            out = out * self.scale
        return out + self.offset if self.offset >= 0 else out - -self.offset

    def __str__(self) -> str:
        return f"{self.scale}*{self.symbol}{self.offset:+d}" if self.symbol else str(self.offset)


@dataclass
class Context:
    """What evaluation knows: sizes of the symbols, the axes' grids, the tensors, and where the value is used."""
    sizes: Mapping[str, int]
    grids: Sequence[np.ndarray]
    tensors: Mapping[str, Value]
    scalars: Mapping[str, Value]
    active: np.ndarray = field(default_factory=lambda: np.array(True))

    def where(self, condition: np.ndarray) -> Context:
        return Context(self.sizes, self.grids, self.tensors, self.scalars, self.active & condition)


@dataclass
class Builder:
    """What building knows: te variables of symbols and scalars, the axes, the tensors."""
    variables: Mapping[str, Any]
    axes: Sequence[Any]
    tensors: Mapping[str, Any]


@dataclass(frozen=True)
class Node:
    """An expression; `evaluate` raises Reject where its reference value is not certain."""

    def build(self, b: Builder) -> Any:
        raise NotImplementedError

    def evaluate(self, c: Context) -> Value:
        raise NotImplementedError


# ---- indices: integers that evaluate to plain arrays

@dataclass(frozen=True)
class Index:
    """An integer index."""

    def build(self, b: Builder) -> Any:
        raise NotImplementedError

    def at(self, c: Context) -> np.ndarray:
        raise NotImplementedError


@dataclass(frozen=True)
class Number(Index):
    value: int

    def build(self, b: Builder) -> Any:
        return self.value

    def at(self, c: Context) -> np.ndarray:
        return np.array(self.value)


@dataclass(frozen=True)
class Axis(Index):
    position: int

    def build(self, b: Builder) -> Any:
        return b.axes[self.position]

    def at(self, c: Context) -> np.ndarray:
        return c.grids[self.position]


@dataclass(frozen=True)
class Extent(Index):
    dim: Dim

    def build(self, b: Builder) -> Any:
        return self.dim.build(b.variables)

    def at(self, c: Context) -> np.ndarray:
        return np.array(self.dim.value(c.sizes))


_INDEX_OPS = {
    "add": (lambda a, b: a + b, np.add), "sub": (lambda a, b: a - b, np.subtract),
    "mul": (lambda a, b: a * b, np.multiply),
    "floordiv": (lambda a, b: a // b, np.floor_divide), "floormod": (lambda a, b: a % b, np.mod),
    "min": (te.minimum, np.minimum), "max": (te.maximum, np.maximum),
}


@dataclass(frozen=True)
class IndexOp(Index):
    op: str
    a: Index
    b: Index

    def build(self, b: Builder) -> Any:
        return _INDEX_OPS[self.op][0](self.a.build(b), self.b.build(b))

    def at(self, c: Context) -> np.ndarray:
        with np.errstate(all="ignore"):
            return _INDEX_OPS[self.op][1](self.a.at(c), self.b.at(c))


@dataclass(frozen=True)
class Gathered(Index):
    """An index that is itself read from an integer tensor, kept in [0, extent)."""
    read: Read
    extent: Dim

    def build(self, b: Builder) -> Any:
        return te.maximum(te.minimum(self.read.build(b).astype("int32"), Extent(self.extent).build(b) - 1), 0)

    def at(self, c: Context) -> np.ndarray:
        x = self.read.evaluate(c).x.astype(np.int64)
        return np.clip(x, 0, max(self.extent.value(c.sizes) - 1, 0))


# ---- values

@dataclass(frozen=True)
class Constant(Node):
    dtype: str
    value: float

    def build(self, b: Builder) -> Any:
        return te.const(self.value, self.dtype)

    def evaluate(self, c: Context) -> Value:
        return values.constant(self.dtype, self.value)


@dataclass(frozen=True)
class Scalar(Node):
    """A scalar argument of the function."""
    name: str
    dtype: str

    def build(self, b: Builder) -> Any:
        return b.variables[self.name]

    def evaluate(self, c: Context) -> Value:
        return c.scalars[self.name]


@dataclass(frozen=True)
class IndexValue(Node):
    """An index as a value of dtype."""
    dtype: str
    index: Index

    def build(self, b: Builder) -> Any:
        return te.cast(self.dtype, self.index.build(b))

    def evaluate(self, c: Context) -> Value:
        return values.cast(self.dtype, values.integer("int32", self.index.at(c)))


@dataclass(frozen=True)
class Read(Node):
    tensor: str
    indices: tuple[Index, ...]

    def build(self, b: Builder) -> Any:
        return b.tensors[self.tensor](*[i.build(b) for i in self.indices])

    def evaluate(self, c: Context) -> Value:
        v = c.tensors[self.tensor]
        at = []
        for index, extent in zip(self.indices, v.x.shape, strict=True):
            place = index.at(c)
            inside = (place >= 0) & (place < extent)
            points, used = np.broadcast_arrays(inside, c.active)
            if points.size and not np.all(points | ~used):
                raise Reject(f"an index of {self.tensor} is outside")
            at.append(np.clip(place, 0, max(extent - 1, 0)))
        if 0 in v.x.shape:
            shape = np.broadcast_shapes(*[a.shape for a in at], *[g.shape for g in c.grids])
            v = Value(v.dtype, np.zeros((1,) * v.x.ndim, v.x.dtype), v.magnitude if v.magnitude is None else
                      np.zeros((1,) * v.x.ndim, values.WIDE), v.weight, v.bit)
            at = [np.zeros(shape, int) for _ in at]
        pick = tuple(np.broadcast_arrays(*at)) if at else ()
        return Value(v.dtype, np.asarray(v.x[pick]), None if v.magnitude is None else np.asarray(v.magnitude[pick]),
                     v.weight, v.bit)


@dataclass(frozen=True)
class Nibble(Node):
    """The element at (*outer, last) of 4-bit integers of which a byte of a uint8 tensor holds two; last >= 0."""
    tensor: str
    outer: tuple[Index, ...]
    last: Index
    signed: bool

    def build(self, b: Builder) -> Any:
        return te.unpack_int4(b.tensors[self.tensor], *[i.build(b) for i in (*self.outer, self.last)],
                              signed=self.signed)

    def evaluate(self, c: Context) -> Value:
        byte = Read(self.tensor, (*self.outer, IndexOp("floordiv", self.last, Number(2)))).evaluate(c).x.astype(int)
        bits = np.where(self.last.at(c) % 2 == 1, byte // 16, byte % 16)
        if not self.signed:
            return values.integer("uint8", bits)
        return values.integer("int8", np.where(bits >= 8, bits - 16, bits))


@dataclass(frozen=True)
class Binary(Node):
    op: str
    a: Node
    b: Node

    def build(self, b: Builder) -> Any:
        return te_binary(self.op, self.a.build(b), self.b.build(b))

    def evaluate(self, c: Context) -> Value:
        return values.binary(self.op, self.a.evaluate(c), self.b.evaluate(c))


_TE_BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b, "floormod": lambda a, b: a % b, "truncdiv": te.truncdiv, "truncmod": te.truncmod,
    "min": te.minimum, "max": te.maximum, "bitand": lambda a, b: a & b, "bitor": lambda a, b: a | b,
    "bitxor": lambda a, b: a ^ b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}


def te_binary(op: str, a: Any, b: Any) -> Any:
    return _TE_BINARY[op](a, b)


@dataclass(frozen=True)
class Logic(Node):
    """and, or, not of conditions."""
    op: str
    parts: tuple[Node, ...]

    def build(self, b: Builder) -> Any:
        built = [p.build(b) for p in self.parts]
        return te.logical_not(built[0]) if self.op == "not" else (te.all if self.op == "and" else te.any)(*built)

    def evaluate(self, c: Context) -> Value:
        xs = [p.evaluate(c).x for p in self.parts]
        if self.op == "not":
            return Value("bool", ~xs[0])
        out = xs[0]
        for x in xs[1:]:
            out = out & x if self.op == "and" else out | x
        return Value("bool", out)


@dataclass(frozen=True)
class Compare(Node):
    """A comparison of two indices."""
    op: str
    a: Index
    b: Index

    def build(self, b: Builder) -> Any:
        return te_binary(self.op, self.a.build(b), self.b.build(b))

    def evaluate(self, c: Context) -> Value:
        return Value("bool", values.COMPARISONS[self.op](self.a.at(c), self.b.at(c)))


@dataclass(frozen=True)
class Choose(Node):
    """a where the condition holds, else b; lazy: only the chosen one is evaluated."""
    condition: Node
    a: Node
    b: Node
    lazy: bool = True

    def build(self, b: Builder) -> Any:
        how = te.if_then_else if self.lazy else te.select
        return how(self.condition.build(b), self.a.build(b), self.b.build(b))

    def evaluate(self, c: Context) -> Value:
        condition = self.condition.evaluate(c)
        yes, no = (c.where(condition.x), c.where(~condition.x)) if self.lazy else (c, c)
        return values.select(condition, self.a.evaluate(yes), self.b.evaluate(no))


@dataclass(frozen=True)
class Cast(Node):
    dtype: str
    a: Node

    def build(self, b: Builder) -> Any:
        return te.cast(self.dtype, self.a.build(b))

    def evaluate(self, c: Context) -> Value:
        return values.cast(self.dtype, self.a.evaluate(c))


@dataclass(frozen=True)
class Unary(Node):
    """abs, neg, a rounding or a function of a float."""
    name: str
    a: Node

    def build(self, b: Builder) -> Any:
        x = self.a.build(b)
        return -x if self.name == "neg" else getattr(te, self.name)(x)

    def evaluate(self, c: Context) -> Value:
        a = self.a.evaluate(c)
        if self.name == "neg":
            return values.negative(a)
        return values.absolute(a) if self.name == "abs" else values.function(self.name, a)
