"""Random tensor programs with their reference values."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright import te
from tilewright.tir.stmt import PrimFunc

from . import values
from .expressions import Builder, Constant, Context, Dim, Node
from .values import Value, is_float

ODD_FLOATS = np.array([np.nan, np.inf, -np.inf, -0.0])


@dataclass(frozen=True)
class Stage:
    """name[axes] = body, or a reduction of body over the reduce axes.

    "argmax" has a second output, `name` + "at": the place of the greatest element among the reduce axes, counted row
    by row.
    """
    name: str
    dtype: str
    axes: tuple[Dim, ...]
    body: Node
    reduce_axes: tuple[Dim, ...] = ()
    reducer: str = ""
    where: Node | None = None
    start: Constant | None = None

    def outputs(self) -> list[tuple[str, str]]:
        """(name, dtype) of each tensor that the stage makes."""
        return [(self.name, self.dtype), *([(f"{self.name}at", "int32")] if self.reducer == "argmax" else [])]

    def build(self, variables: dict[str, Any], made: dict[str, Any]) -> Any:
        """The stage in te: a tensor, or a tuple of them."""
        return build_stage(self, variables, made)

    def evaluate(self, sizes: dict[str, int], known: dict[str, Value], scalars: dict[str, Value]) -> dict[str, Value]:
        """The reference values of its tensors. Raises Reject where they are not certain."""
        return evaluate_stage(self, sizes, known, scalars)


@dataclass(frozen=True)
class Input:
    """An argument tensor; its elements are multiples of 2**-bit in [-top, top].

    special: with NaN and infinities, or the ends of an integer's range. mostly: nine in ten elements are this.
    """
    name: str
    dtype: str
    shape: tuple[Dim, ...]
    bit: int
    top: int
    special: bool = False
    mostly: int | None = None


@dataclass
class Program:
    """Stages in order over inputs; each of `bindings` gives the symbols values for one run."""
    seed: int
    symbols: dict[str, str] = field(default_factory=dict)                # name -> dtype
    bindings: list[dict[str, int]] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    scalars: dict[str, tuple[str, float]] = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    @property
    def has_reduction(self) -> bool:
        return any(s.reducer for s in self.stages)

    @property
    def is_symbolic(self) -> bool:
        return any(d.symbol for shape, _ in self.known_tensors().values() for d in shape)

    def known_tensors(self) -> dict[str, tuple[tuple[Dim, ...], str]]:
        """(shape, dtype) of every tensor by name."""
        out = {i.name: (i.shape, i.dtype) for i in self.inputs}
        return out | {name: (s.axes, dtype) for s in self.stages for name, dtype in s.outputs()}

    def shape_of(self, name: str) -> tuple[Dim, ...]:
        return self.known_tensors()[name][0]

    def dtype_of(self, name: str) -> str:
        return self.known_tensors()[name][1]

    def argument_names(self) -> list[str]:
        return [*(i.name for i in self.inputs), *self.outputs]

    def tensors(self) -> tuple[list[Any], dict[str, Any]]:
        """(arguments in order: tensors, then scalars; every te tensor by name)."""
        variables: dict[str, Any] = {s: te.var(s, d) for s, d in self.symbols.items()}
        variables |= {s: te.var(s, d) for s, (d, _) in self.scalars.items()}
        made: dict[str, Any] = {}
        for i in self.inputs:
            made[i.name] = te.placeholder([d.build(variables) for d in i.shape], i.dtype, i.name)
        for s in self.stages:
            built = s.build(variables, made)
            tensors = built if isinstance(built, tuple) else (built,)
            made |= {name: t for (name, _), t in zip(s.outputs(), tensors, strict=True)}
        args = [made[n] for n in self.argument_names()]
        args += [variables[s] for s in self.scalars]
        args += [variables[s] for s in self.symbols if not self._bound(s)]
        return args, made

    def _bound(self, symbol: str) -> bool:
        """True when some argument has the symbol itself as an extent."""
        plain = Dim(symbol, 1, 0)
        return any(d == plain for n in self.argument_names() for d in self.shape_of(n))

    def function(self) -> PrimFunc:
        return te.create_prim_func(self.tensors()[0])

    def data(self, run: int) -> tuple[list[np.ndarray], list[Any], dict[str, Value]]:
        """(fresh argument arrays, scalar arguments, reference values by name) of one of the bindings."""
        sizes = self.bindings[run]
        arrays, known = {}, {}
        for i in self.inputs:
            arrays[i.name] = input_array(i, sizes, self.seed, run)
            known[i.name] = values.of_array(i.dtype, arrays[i.name], i.bit)
        scalars = {n: values.constant(d, v) for n, (d, v) in self.scalars.items()}
        for s in self.stages:
            known |= s.evaluate(sizes, known, scalars)
        args = [arrays[i.name] for i in self.inputs]
        for number, name in enumerate(self.outputs):
            shape = [d.value(sizes) for d in self.shape_of(name)]
            args.append(unwritten(self.dtype_of(name), shape, self.seed + run + number))
        numbers = [v for _, v in self.scalars.values()] + [sizes[s] for s in self.symbols if not self._bound(s)]
        return args, numbers, known


def unwritten(dtype: str, shape: Sequence[int], choice: int) -> np.ndarray:
    """An output before the call: full of a value that shows, one choice or another, where it is read."""
    if dtype == "bool":
        return np.full(shape, choice % 2 == 0)
    if is_float(dtype):
        return np.full(shape, (93, np.inf, -np.inf, np.nan)[choice % 4], values.numpy_dtype(dtype))
    info = np.iinfo(dtype)
    return np.full(shape, (93, info.max, info.min)[choice % 3], dtype)


def input_array(i: Input, sizes: dict[str, int], seed: int, run: int) -> np.ndarray:
    """The elements of an input of the program of a seed in one of its runs, whatever other inputs there are."""
    shape = [d.value(sizes) for d in i.shape]
    rng = np.random.default_rng(seed * 1000 + run * 37 + int(i.name[1:]))
    if i.dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if not is_float(i.dtype):
        info = np.iinfo(i.dtype)
        low, high = max(-i.top, int(info.min)), min(i.top, int(info.max))
        x = rng.integers(low, high, shape, dtype=np.int64, endpoint=True).astype(i.dtype)
        odd = np.array([info.min, info.max], i.dtype)
    elif i.bit > 20:
        x, odd = rng.uniform(-i.top, i.top, shape), ODD_FLOATS
    else:
        x = rng.integers(-i.top * 2 ** i.bit, i.top * 2 ** i.bit, shape, endpoint=True) / 2.0 ** i.bit
        odd = ODD_FLOATS
    if i.special:
        x = np.where(rng.random(shape) < 0.6 / len(odd), odd[rng.integers(0, len(odd), shape)], x)
    if i.mostly is not None:
        x = np.where(rng.random(shape) < 0.9, np.asarray(i.mostly, x.dtype), x)
    return np.asarray(x).astype(values.numpy_dtype(i.dtype))


def _greater(a: Any, b: Any) -> tuple[Any, Any]:
    """The pair (value, place) with the greater value; of equal ones the one that comes first."""
    first = te.any(a[0] > b[0], te.all(a[0] == b[0], a[1] < b[1]))
    return te.select(first, a[0], b[0]), te.select(first, a[1], b[1])


ARGMAX = te.comm_reducer(_greater, lambda v, i: (te.min_value(v), te.max_value(i)), name="argmax")
REDUCERS = {
    "bitxor": te.comm_reducer(lambda a, b: a ^ b, lambda t: te.const(0, t), name="xor"),
    "bitor": te.comm_reducer(lambda a, b: a | b, lambda t: te.const(0, t), name="union"),
}


def build_stage(s: Stage, variables: dict[str, Any], made: dict[str, Any]) -> Any:
    reduce_axes = [te.reduce_axis((0, d.build(variables)), name=f"k{n}") for n, d in enumerate(s.reduce_axes)]

    def body(*axes: Any) -> Any:
        b = Builder(variables, [*axes, *(k.var for k in reduce_axes)], made)
        e = s.body.build(b)
        if not s.reducer:
            return e
        where = None if s.where is None else s.where.build(b)
        if s.reducer == "argmax":
            place = reduce_axes[0].var
            for k, d in zip(reduce_axes[1:], s.reduce_axes[1:]):
                place = place * d.build(variables) + k.var
            return ARGMAX((e, place.astype("int32")), axis=reduce_axes, where=where)
        how = REDUCERS.get(s.reducer) or getattr(te, s.reducer)
        return how(e, axis=reduce_axes, where=where, init=None if s.start is None else s.start.build(b))
    return te.compute([d.build(variables) for d in s.axes], body, name=s.name)


def evaluate_stage(s: Stage, sizes: dict[str, int], known: dict[str, Value],
                   scalars: dict[str, Value]) -> dict[str, Value]:
    """The reference values of the tensors of a stage. Raises Reject where they are not certain."""
    shape = [d.value(sizes) for d in (*s.axes, *s.reduce_axes)]
    grids = [np.arange(n).reshape([n if d == e else 1 for e in range(len(shape))]) for d, n in enumerate(shape)]
    c = Context(sizes, grids, known, scalars)
    where = None
    if s.where is not None:
        where = np.broadcast_to(s.where.evaluate(c).x, shape)
        c = c.where(where)
    v = s.body.evaluate(c)
    magnitude = None if v.magnitude is None else np.broadcast_to(v.magnitude, shape)
    v = Value(v.dtype, np.broadcast_to(v.x, shape), magnitude, v.weight, v.bit)
    if s.reducer == "argmax":
        v, place = values.argmax(v, len(s.reduce_axes), where)
        return {s.name: v, f"{s.name}at": place}
    if s.reducer:
        v = values.reduce(s.reducer, v, len(s.reduce_axes), where, None if s.start is None else s.start.evaluate(c))
    return {s.name: v}
