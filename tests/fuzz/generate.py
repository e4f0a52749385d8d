"""Draws random tensor programs: stages whose reference values are certain, over inputs made to fit them."""
from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from tilewright.support.errors import IRError

from . import scans, values
from .expressions import (
    Axis,
    Binary,
    Cast,
    Choose,
    Compare,
    Constant,
    Context,
    Dim,
    Extent,
    Gathered,
    Index,
    IndexOp,
    IndexValue,
    Logic,
    Nibble,
    Node,
    Number,
    Read,
    Scalar,
    Unary,
)
from .programs import Input, Program, Stage, evaluate_stage, input_array
from .values import Reject, Value, is_float
from .windows import window_stage

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
NO_SCALARS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "uint64")       # dtypes of tensors alone
EXTENTS = (2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 19, 23, 31, 32)
MOST_POINTS = 3000                                     # iterations of one stage
MOST_ELEMENTS = 1500                                   # of one tensor


def _leaves(e: Any) -> Iterator[Any]:
    """The constants, scalars and elements in e."""
    if isinstance(e, (Constant, Number, Scalar, Read, Nibble)):
        yield e
    elif isinstance(e, (tuple, list)):
        for part in e:
            yield from _leaves(part)
    elif is_dataclass(e):
        for f in fields(e):
            yield from _leaves(getattr(e, f.name))


def _may_be_constant(e: Node) -> bool:
    """True for an expression that may be folded to a number, 0 among them, while it is built."""
    leaves = list(_leaves(e))
    return not any(isinstance(x, (Scalar, Read, Nibble)) for x in leaves) or any(
        isinstance(x, (Constant, Number)) and not x.value for x in leaves)


class Generator:
    """Draws programs; `rng` decides everything."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.windows = random.Random(seed + 1)           # a stream of its own: other stages stay as they were
        self.p = Program(seed)
        self.counter = itertools.count()
        self.known: list[dict[str, Value]] = []

    def program(self) -> Program:
        rng, p = self.rng, self.p
        self.base = rng.choices(["int32", "float32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64",
                                 "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "bool"],
                                [8, 10, 3, 2, 2, 1, 1, 1, 1, 4, 2, 2, 1, 1, 1])[0]
        self.exact = rng.random() < 0.6                # floats are small multiples of a power of two
        self.special = rng.random() < 0.08
        self._dims()
        self.known = [{} for _ in p.bindings]
        count = rng.choices([1, 2, 3, 4, 5], [3, 5, 5, 3, 1])[0]
        reductions = rng.random() < 0.8
        while len(p.stages) < count:
            self._stage(reductions and (rng.random() < 0.5 or len(p.stages) == count - 1 and not p.has_reduction))
        scans.add(self)
        self._outputs()
        return p

    def after_scan(self) -> None:
        """Add a stage that reads the last one."""
        self.recent = True
        self._stage(False)

    def _dims(self) -> None:
        rng, p = self.rng, self.p
        symbols = rng.choices([0, 1, 2], [66, 25, 9])[0]
        kind = "int64" if rng.random() < 0.1 else "int32"
        p.symbols = dict.fromkeys(("n", "m")[:symbols], kind)
        dims = [Dim(s, 1, 0) for s in p.symbols]
        for _ in range(rng.randint(1, 3)):
            dims.append(Dim(offset=0 if rng.random() < 0.03 else 1 if rng.random() < 0.1 else rng.choice(EXTENTS)))
        self.dims = dims
        runs = 2 if symbols else 1
        sizes = [1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 20]
        p.bindings = [{s: rng.choice(sizes) for s in p.symbols} for _ in range(runs)]
        if symbols and rng.random() < 0.15:
            p.bindings[1][rng.choice(list(p.symbols))] = 0

    def _volume(self, dims: Sequence[Dim]) -> int:
        return max(int(np.prod([d.value(b) for d in dims], dtype=np.int64)) for b in self.p.bindings)

    # -- stages

    def _stage(self, reduces: bool) -> None:
        """Add one stage, drawn until its reference value is certain."""
        for attempt in itertools.count():
            inputs, scalars = list(self.p.inputs), dict(self.p.scalars)
            known = [dict(k) for k in self.known]
            try:
                s = self._draw(reduces, simple=attempt > 40)
                for run, sizes in enumerate(self.p.bindings):
                    constants = {n: values.constant(d, v) for n, (d, v) in self.p.scalars.items()}
                    self.known[run] |= evaluate_stage(s, sizes, self.known[run], constants)
                self._require_divisors(s)
            except Reject:
                self.p.inputs, self.p.scalars, self.known = inputs, scalars, known
                continue
            self.p.stages.append(s)
            return

    def _require_divisors(self, s: Stage) -> None:
        """Raises Reject where te finds that a divisor of the stage is the constant 0, as of x % (a - a)."""
        try:
            replace(self.p, stages=[*self.p.stages, s], outputs=[name for name, _ in s.outputs()]).tensors()
        except IRError as why:
            if "by the constant 0" not in str(why):
                raise
            raise Reject(str(why)) from None

    def _elementwise(self) -> Stage:
        """A stage over the latest one, element by element."""
        p = self.p
        last = p.stages[-1]
        self.axes, self.recent = last.axes, False
        e: Node = Read(last.name, tuple(Axis(n) for n in range(len(last.axes))))
        for _ in range(self.rng.choice([1, 1, 2])):
            e = self._grow(last.dtype, e)
        return Stage(f"T{len(p.stages)}", last.dtype, last.axes, e)

    def _draw(self, reduces: bool, simple: bool) -> Stage:
        rng = self.rng
        if self.p.stages and not simple and self.windows.random() < 0.15:
            return window_stage(self.windows, self.p.stages[-1], f"T{len(self.p.stages)}", self.p.bindings)
        if self.p.stages and not reduces and rng.random() < 0.35:
            return self._elementwise()
        dtype = self.base if rng.random() < 0.75 else rng.choice((*INTEGERS, *FLOATS, "bool"))
        if simple:
            dtype = "int32"
        axes = tuple(self._dim() for _ in range(rng.choices([0, 1, 2, 3, 4], [1, 6, 12, 4, 1])[0]))
        reduce_axes: tuple[Dim, ...] = ()
        if reduces:
            reduce_axes = tuple(self._dim() if rng.random() < 0.7 else Dim(offset=rng.choice([1, 2, 3, 5]))
                                for _ in range(rng.choices([1, 2, 3], [8, 3, 1])[0]))
            dtype = rng.choice(["int32", "int64", "float32"]) if dtype == "bool" and rng.random() < 0.7 else dtype
        if self._volume((*axes, *reduce_axes)) > MOST_POINTS or self._volume(axes) > MOST_ELEMENTS:
            raise Reject("too large")
        if any(d.value(b) < 0 for b in self.p.bindings for d in (*axes, *reduce_axes)):
            raise Reject("a negative extent")
        self.axes = (*axes, *reduce_axes)
        reducer = ""
        if reduces:
            usual = [*["sum"] * 6, *["max"] * 3, *["min"] * 2, "prod", "prod", "argmax"]
            kinds = ["max", "min"] if dtype == "bool" else usual
            if not is_float(dtype) and dtype != "bool":
                kinds += ["bitxor", "bitor"]
            reducer = rng.choice(kinds)
        self.recent = True
        body = self._body(dtype, bool(reduces))
        where = self._condition() if reduces and rng.random() < 0.12 else None
        begins = reduces and dtype != "bool" and reducer != "argmax" and rng.random() < 0.08
        start = Constant(dtype, rng.choice([0, 1, 2])) if begins else None
        return Stage(f"T{len(self.p.stages)}", dtype, axes, body, reduce_axes, reducer, where, start)

    def _dim(self) -> Dim:
        rng = self.rng
        if self.p.stages and rng.random() < 0.6:       # an axis of the latest stage, so that stages fit each other
            axes = self.p.stages[-1].axes
            if axes:
                return rng.choice(axes)
        d = rng.choice(self.dims)
        if rng.random() < 0.12:
            d = Dim(d.symbol, d.scale, d.offset + rng.choice([-2, -1, 1, 2]))
        elif rng.random() < 0.04 and d.offset <= 12:
            d = Dim(d.symbol, d.scale * 2, d.offset * 2)
        if not d.symbol and d.offset < 0:
            raise Reject("a negative extent")
        return d

    def _body(self, dtype: str, reduces: bool) -> Node:
        rng = self.rng
        if reduces and rng.random() < 0.5:             # a contraction: a product of two reads
            a, b = self._operand(dtype), self._operand(dtype)
            return Logic("and", (a, b)) if dtype == "bool" else Binary("mul", a, b)
        e = self._operand(dtype)
        for _ in range(rng.choices([0, 1, 2, 3], [3, 4, 3, 1])[0]):
            e = self._grow(dtype, e)
        return e

    def _grow(self, dtype: str, e: Node) -> Node:
        """A larger expression of dtype around e."""
        rng = self.rng
        if dtype == "bool":
            return rng.choice([
                lambda: Logic("not", (e,)), lambda: Logic("and", (e, self._operand(dtype))),
                lambda: Logic("or", (e, self._condition())),
                lambda: Choose(self._condition(), e, self._operand(dtype))])()
        roll = rng.random()
        if roll < 0.5:
            ops = ["add", "sub", "mul", "min", "max", "add"]
            if not is_float(dtype) and rng.random() < 0.3:
                ops = ["floordiv", "floormod", "truncdiv", "truncmod", "bitand", "bitor", "bitxor"]
            elif is_float(dtype) and rng.random() < 0.2:
                other = Binary("add", Unary("abs", self._operand(dtype)), Constant(dtype, 1))
                return Binary("div", e, rng.choice([other, Constant(dtype, rng.choice([2, 4, 3]))]))
            op, other = rng.choice(ops), self._leaf(dtype)
            divides = op in ("floordiv", "floormod", "truncdiv", "truncmod")
            if divides and isinstance(other, Constant) and not other.value:
                other = Constant(dtype, 3)
            forwards = rng.random() < 0.7 or divides and _may_be_constant(e)
            return Binary(op, e, other) if forwards else Binary(op, other, e)
        if roll < 0.65:
            return Choose(self._condition(), e, self._leaf(dtype), lazy=rng.random() < 0.7)
        if roll < 0.8:
            return self._unary(dtype, e)
        if roll < 0.9:
            return Cast(dtype, Cast(rng.choice((*INTEGERS, *FLOATS)), e))
        return Binary("mul", e, e) if is_float(dtype) else Binary("max", e, self._leaf(dtype))

    def _unary(self, dtype: str, e: Node) -> Node:
        rng = self.rng
        if not is_float(dtype):
            return Unary("abs", e) if dtype.startswith("u") or rng.random() < 0.5 else Unary("neg", e)
        name = rng.choice([*values.FUNCTIONS, *values.ROUNDINGS, "abs", "neg", "abs", "neg"])
        if name in ("sqrt", "log", "rsqrt"):
            e = Binary("add", Unary("abs", e), Constant(dtype, 1))
        elif name == "exp":
            e = Binary("min", e, Constant(dtype, 2))
        return Unary(name, e)

    def _leaf(self, dtype: str) -> Node:
        """A read, a constant, an index or a scalar argument of dtype."""
        rng = self.rng
        roll = rng.random()
        if roll < 0.5 or dtype == "bool":
            return self._operand(dtype)
        if roll < 0.75:
            low = 0 if dtype.startswith("u") else -3
            value = rng.randint(low, 5)
            return Constant(dtype, value / 4 if is_float(dtype) and rng.random() < 0.5 else value)
        if roll < 0.9 and self.axes:
            return IndexValue(dtype, self._affine())
        name = f"alpha{len(self.p.scalars)}"
        if len(self.p.scalars) > 1 or dtype in NO_SCALARS:
            return Constant(dtype, 2)
        self.p.scalars[name] = (dtype, rng.choice([0.5, 1, -2, 3]) if is_float(dtype) else rng.randint(0, 7))
        return Scalar(name, dtype)

    def _condition(self) -> Node:
        """A condition on indices, or on elements."""
        rng = self.rng
        if rng.random() < 0.6 and self.axes:
            a, b = self._affine(), rng.choice([Number(rng.randint(0, 6)), self._affine()])
            if rng.random() < 0.25:
                return Compare("eq", IndexOp("floormod", a, Number(rng.choice([2, 3, 4]))), Number(rng.choice([0, 1])))
            return Compare(rng.choice(["lt", "le", "gt", "ge", "ne"]), a, b)
        dtype = rng.choice([self.base, "int32"])
        if dtype == "bool":
            return self._operand("bool")
        op = rng.choice(list(values.COMPARISONS))
        return Binary(op, self._operand(dtype), Constant(dtype, rng.choice([0, 1, 2])))

    def _affine(self) -> Index:
        """An index expression of one or two axes."""
        rng = self.rng
        e: Index = Axis(rng.randrange(len(self.axes)))
        if rng.random() < 0.25:
            e = IndexOp("mul", e, Number(rng.choice([2, 3])))
        if rng.random() < 0.4:
            e = IndexOp(rng.choice(["add", "add", "sub"]), e, Axis(rng.randrange(len(self.axes))))
        if rng.random() < 0.4:
            e = IndexOp(rng.choice(["add", "sub"]), e, Number(rng.randint(1, 3)))
        return e

    # -- reads

    def _operand(self, dtype: str) -> Node:
        """A read of some tensor, as dtype."""
        rng = self.rng
        p = self.p
        choices = list(p.known_tensors())
        unread = [n for s in p.stages for n, _ in s.outputs() if not self._is_read(n)]
        if unread and self.recent and rng.random() < 0.85:
            name = rng.choice(unread)
            self.recent = False
        elif choices and rng.random() < 0.45:
            name = rng.choice(choices)
        elif self.axes and dtype != "bool" and rng.random() < 0.08:
            return Cast(dtype, self._nibble())
        else:
            name = self._new_input(dtype).name
        found = p.dtype_of(name)
        read = self._read(name)
        if found == dtype:
            return read
        if dtype == "bool":
            return Binary(rng.choice(["gt", "ne", "le"]), read, Constant(found, rng.choice([0, 1])))
        return Cast(dtype, read)

    def _nibble(self) -> Node:
        """An element of a new input of packed 4-bit integers."""
        rng = self.rng
        last = rng.randrange(len(self.axes))
        outer = [a for a in range(len(self.axes)) if a != last and rng.random() < 0.4]
        d = self.axes[last]
        pairs = d if d.symbol else Dim(offset=(d.offset + 1) // 2)             # of a symbol there is no half: the whole
        packed = self._add_input("uint8", (*(self.axes[a] for a in outer), pairs), 0, 255)
        return Nibble(packed.name, tuple(Axis(a) for a in outer), Axis(last), rng.random() < 0.6)

    def _is_read(self, name: str) -> bool:
        return any(f"'{name}'" in repr(s.body) for s in self.p.stages)

    def _new_input(self, dtype: str, shape: tuple[Dim, ...] | None = None) -> Input:
        """An input whose dimensions are some of the axes, in some order."""
        rng = self.rng
        if shape is None:
            picked = rng.sample(self.axes, rng.randint(min(1, len(self.axes)), min(len(self.axes), 3)))
            if rng.random() < 0.2:
                picked = [d if rng.random() < 0.5 else Dim(d.symbol, d.scale, d.offset + rng.choice([1, 2]))
                          for d in picked]
            if rng.random() < 0.1:
                picked.insert(rng.randint(0, len(picked)), Dim(offset=1))
            shape = tuple(picked)
        if rng.random() < 0.1 and dtype != "bool":
            dtype = rng.choice((*INTEGERS, "float32"))
        bit, top = (rng.choice([0, 0, 1]), rng.choice([1, 2, 4])) if self.exact else (60, rng.choice([1, 2]))
        special = self.special and rng.random() < 0.6
        if not is_float(dtype):
            bit, top = 0, rng.choice([3, 9, 100, 2**31 - 1])
        return self._add_input(dtype, shape, bit, top, special)

    def _add_input(self, dtype: str, shape: tuple[Dim, ...], bit: int, top: int, special: bool = False) -> Input:
        if self._volume(shape) > MOST_ELEMENTS:
            raise Reject("too large")
        i = Input(f"A{len(self.p.inputs)}", dtype, shape, bit, top, special)
        self.p.inputs.append(i)
        for run, sizes in enumerate(self.p.bindings):
            self.known[run][i.name] = values.of_array(dtype, input_array(i, sizes, self.p.seed, run), bit)
        return i

    def _read(self, name: str) -> Node:
        """The tensor at indices that fit it, guarded where they may leave it."""
        shape = self.p.shape_of(name)
        dtype = self.p.dtype_of(name)
        spare = list(range(len(self.axes)))
        indices: list[Index] = []
        guards: list[Node] = []
        for d in shape:
            index, guard = self._index(d, spare)
            indices.append(index)
            guards += guard
        read: Node = Read(name, tuple(indices))
        if not guards:
            return read
        condition = guards[0] if len(guards) == 1 else Logic("and", tuple(guards))
        return Choose(condition, read, Constant(dtype, 0 if self.rng.random() < 0.7 else 1))

    def _index(self, d: Dim, spare: list[int]) -> tuple[Index, list[Node]]:
        """(an index of a dimension of extent d, conditions under which it is inside)."""
        rng = self.rng
        equal = [a for a in spare if self.axes[a] == d] or [a for a in range(len(self.axes)) if self.axes[a] == d]
        if equal and rng.random() < 0.7:
            a = rng.choice(equal)
            if a in spare:
                spare.remove(a)
            if rng.random() < 0.08:
                return IndexOp("sub", IndexOp("sub", Extent(d), Number(1)), Axis(a)), []
            return Axis(a), []
        if not self.axes or rng.random() < 0.1:
            index: Index = Number(rng.randint(0, 2))
        elif rng.random() < 0.06:
            return self._gathered(d), []
        elif rng.random() < 0.15:
            index = IndexOp(rng.choice(["floordiv", "floormod"]), self._affine(), Number(rng.choice([2, 3, 4])))
        elif rng.random() < 0.15 and len(self.axes) > 1:
            a, b = rng.sample(range(len(self.axes)), 2)
            index = IndexOp("add", IndexOp("mul", Axis(a), Extent(self.axes[b])), Axis(b))
        else:
            index = self._affine()
        return self._fitted(index, d)

    def _gathered(self, d: Dim) -> Index:
        rng = self.rng
        ready = [n for n, (_, dtype) in self.p.known_tensors().items() if dtype in ("int32", "int16", "uint8")]
        name = rng.choice(ready) if ready and rng.random() < 0.5 else self._new_input("int32").name
        shape = self.p.shape_of(name)
        simple = []
        for extent in shape:
            equal = [a for a in range(len(self.axes)) if self.axes[a] == extent]
            simple.append(Axis(rng.choice(equal)) if equal else None)
        if None in simple or self.p.dtype_of(name) not in ("int32", "int16", "uint8"):
            raise Reject("no plain index")
        return Gathered(Read(name, tuple(simple)), d)  # type: ignore[arg-type]

    def _fitted(self, index: Index, d: Dim) -> tuple[Index, list[Node]]:
        """index kept inside a dimension of extent d: by itself, by a guard, by clamping or by wrapping."""
        if isinstance(index, Number) and not d.symbol and index.value >= d.offset:
            raise Reject("a constant index outside of the shape")
        low, high = True, True
        empty = False
        for sizes in self.p.bindings:
            shape = [a.value(sizes) for a in self.axes]
            extent = d.value(sizes)
            empty = empty or extent == 0
            if 0 in shape:
                continue
            grids = [np.arange(n).reshape([n if p == q else 1 for q in range(len(shape))]) for p, n in enumerate(shape)]
            at = index.at(Context(sizes, grids, {}, {}))
            low, high = low and bool(np.all(at >= 0)), high and bool(np.all(at < extent))
        if low and high and not self._depends(d, index):
            return index, []
        how = self.rng.choice(["guard", "guard", "clamp", "wrap"])
        if how == "guard" or empty:
            guards: list[Node] = []
            if not low or self.rng.random() < 0.1:
                guards.append(Compare("ge", index, Number(0)))
            if not high or not guards or self._depends(d, index):
                guards.append(Compare("lt", index, Extent(d)))
            return index, guards
        if how == "wrap":
            return IndexOp("floormod", index, Extent(d)), []
        last = IndexOp("sub", Extent(d), Number(1))
        return IndexOp("max", IndexOp("min", index, last), Number(0)), []

    def _depends(self, d: Dim, index: Index) -> bool:
        """True when that the index is inside may hold for the sizes that are tried only."""
        used = [a for a in range(len(self.axes)) if f"Axis(position={a})" in repr(index)]
        return bool(d.symbol) or any(self.axes[a].symbol for a in used)

    def _outputs(self) -> None:
        """The tensors that nothing reads, and sometimes others, are arguments; unread inputs vanish."""
        p, rng = self.p, self.rng
        text = "".join(map(repr, p.stages))
        p.outputs = [n for s in p.stages for n, _ in s.outputs() if not self._is_read(n) or rng.random() < 0.08]
        p.inputs = [i for i in p.inputs if f"'{i.name}'" in text]
        p.scalars = {n: v for n, v in p.scalars.items() if f"'{n}'" in text}
        p.symbols = {n: v for n, v in p.symbols.items() if f"symbol='{n}'" in text + repr(p.inputs)}


def program(seed: int) -> Program:
    """The random program of a seed."""
    return Generator(seed).program()
