"""Recurrent layers, one direction of one layer a call; sequences may end early.

x: T[l, b, n], steps first; weight: T[g * h, n], recurrent: T[g * h, h] and the biases: T[g * h], of the g gates in the
order of PyTorch; start: T[b, h], zeros unless given. lengths: integers [b]: sequence b ends there, behind it the
output is 0 and the state stays. reverse: from the last step of each sequence to the first. Floats of 16 bits are
computed in float32 and rounded once, at the end. Activations go by name, or as (name, alpha, beta): those of
ACTIVATIONS. clip: what they read is at most as far from 0.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.support.errors import described
from tilewright.te import math as te_math
from tilewright.te.definition import compute, placeholder
from tilewright.te.extents import simplified
from tilewright.te.scan import scan
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import absolute, all_of, binary, if_then_else, maximum, minimum, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr
from tilewright.topi.contraction import contraction, reduction_axis
from tilewright.topi.indexing import signed
from tilewright.topi.products import linear
from tilewright.topi.shapes import (
    check,
    check_choice,
    check_extent,
    check_numbers,
    check_rank,
    check_tensors,
    constant,
    pairs,
)
from tilewright.topi.types import FLOAT, accumulator, check_kind, common_type

_F = te_math.FUNCTIONS
Step = Callable[..., Sequence[Expr]]
Activation = str | tuple[Any, ...]


def _relu(x: Expr) -> Expr:
    return maximum(x, const(0.0, x.dtype))


# each of x, alpha and beta; the numbers are those where none are given
ACTIVATIONS: dict[str, tuple[Callable[[Expr, float, float], Expr], float, float]] = {
    "sigmoid": (lambda x, a, b: _F["sigmoid"](x), 0.0, 0.0), "tanh": (lambda x, a, b: _F["tanh"](x), 0.0, 0.0),
    "relu": (lambda x, a, b: _relu(x), 0.0, 0.0), "affine": (lambda x, a, b: x * a + b, 1.0, 0.0),
    "leakyrelu": (lambda x, a, b: select(binary("ge", x, 0.0), x, x * a), 0.01, 0.0),
    "thresholdedrelu": (lambda x, a, b: select(binary("gt", x, a), x, const(0.0, x.dtype)), 1.0, 0.0),
    "scaledtanh": (lambda x, a, b: _F["tanh"](x * b) * a, 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: minimum(_relu(x * a + b), const(1.0, x.dtype)), 0.2, 0.5),
    "elu": (lambda x, a, b: select(binary("ge", x, 0.0), x, _F["expm1"](x) * a), 1.0, 0.0),
    "softsign": (lambda x, a, b: x / (absolute(x) + 1.0), 0.0, 0.0),
    "softplus": (lambda x, a, b: _relu(x) + _F["log1p"](_F["exp"](-absolute(x))), 0.0, 0.0),
}


def _functions(op: str, activations: Sequence[Activation], count: int, clip: float | None,
               what: str = "an activation") -> list[Callable[[Expr], Expr]]:
    """The activations as functions. Raises TensorExpressionError for unknown ones, and another number of them."""
    check(isinstance(activations, (tuple, list)) and len(activations) == count, op, f"activations is "
          f"{described(activations)}, {count} are needed")
    check(clip is None or clip >= 0, op, f"clip is {clip}, below 0")
    found: list[Callable[[Expr], Expr]] = []
    for given in activations:
        name, *numbers = given if isinstance(given, tuple) and given else (given,)
        check_choice(op, what, name, ACTIVATIONS)
        rule, *defaults = ACTIVATIONS[name]
        check(len(numbers) <= len(defaults), op, f"{what} is {described(given)}, a name and at most two numbers are "
              "needed")
        for value in numbers:
            check_numbers(op, **{f"a number of {name}": value})
        alpha, beta = [float(v) for v in (*numbers, *defaults[len(numbers):])]

        def function(x: Expr, rule: Any = rule, alpha: float = alpha, beta: float = beta) -> Expr:
            if clip is not None:
                limit = const(float(clip), x.dtype)
                x = minimum(maximum(x, -limit), limit)
            made: Expr = rule(x, alpha, beta)
            return made
        found.append(function)
    return found


class _Layer:
    """The operands of a recurrent layer, checked, and what its steps share."""

    def __init__(self, op: str, gates: int, x: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor | None,
                 recurrent_bias: Tensor | None, lengths: Tensor | None, reverse: bool,
                 starts: dict[str, Tensor | None]) -> None:
        check_tensors(op, x=x, weight=weight, recurrent=recurrent)
        for name, t, rank in (("x", x, 3), ("weight", weight, 2), ("recurrent", recurrent, 2)):
            check_rank(op, name, t, rank)
        self.op, self.x, self.recurrent, self.reverse, self.lengths = op, x, recurrent, reverse, lengths
        (self.steps, self.batch, width), self.size = x.shape, recurrent.shape[1]
        self.rows = simplified(self.size * gates)
        shapes = f"recurrent has the shape {shape_text(recurrent.shape)}"
        check_extent(op, "extent 0 of recurrent", recurrent.shape[0], self.rows, shapes)
        check_extent(op, "extent 0 of weight", weight.shape[0], self.rows, shapes)
        check_extent(op, "extent 1 of weight", weight.shape[1], width, f"x has the shape {shape_text(x.shape)}")
        for name, vector in pairs(("bias", "recurrent_bias"), (bias, recurrent_bias)):
            check_tensors(op, **{name: vector})
            check_rank(op, name, vector, 1)
            check_extent(op, f"the extent of {name}", vector.shape[0], self.rows, shapes)
        for name, state in pairs(list(starts), list(starts.values())):
            check_tensors(op, **{name: state})
            check_rank(op, name, state, 2)
            check_extent(op, f"extent 0 of {name}", state.shape[0], self.batch,
                         f"x has the shape {shape_text(x.shape)}")
            check_extent(op, f"extent 1 of {name}", state.shape[1], self.size, shapes)
        if lengths is not None:
            check_tensors(op, lengths=lengths)
            check_rank(op, "lengths", lengths, 1)
            check(dt.is_integer(lengths.dtype), op, f"lengths is {lengths.dtype}, integers are needed")
            check_extent(op, "the extent of lengths", lengths.shape[0], self.batch)
        given = [t for t in (x, weight, recurrent, bias, recurrent_bias, *starts.values()) if t is not None]
        self.dtype = common_type(op, *given)
        check_kind(op, "an operand", self.dtype, FLOAT)
        self.wide, self.starts, self.recurrent_bias = accumulator(self.dtype), list(starts.values()), recurrent_bias
        self.inputs = linear(x, weight, bias, out_dtype=self.wide)
        self.states: list[Tensor] = []

    def end(self, b: Any) -> Expr:
        """How many steps sequence b has."""
        if self.lengths is None:
            return cast("int64", self.steps)
        return cast("int64", signed(self.lengths(b)))

    def place(self, t: Any, b: Any) -> Expr:
        """The step of x that step t of the recurrence, counted from 1, reads."""
        step = binary("sub", t, 1)
        if not self.reverse:
            return step
        if self.lengths is None:
            return binary("sub", binary("sub", self.steps, 1), step)
        return maximum(self.end(b) - 1 - cast("int64", step), const(0, "int64"))

    def input(self, t: Any, b: Any, row: Any) -> Expr:
        """Element `row` of the linear map of the input of step t."""
        return if_then_else(binary("gt", t, 0), self.inputs(self.place(t, b), b, row), const(0.0, self.wide))

    def before(self, state: int, t: Any, b: Any, j: Any) -> Expr:
        return self.states[state](binary("sub", t, 1), b, j)

    def product(self, name: str, rows: Any, first: Any, read: Callable[..., Expr]) -> Tensor:
        """[t, b, row]: the sum over j of recurrent[first + row, j] * read(t, b, j), + its bias."""
        k, r = reduction_axis(self.size, "k"), self.recurrent
        shape = (simplified(self.steps + 1), self.batch, rows)
        y = contraction(f"{self.op}_{name}", shape, lambda t, b, row: (read(t, b, k.var), r(
            binary("add", row, first), k)), [k], self.wide)
        bias = self.recurrent_bias
        if bias is None:
            return y
        return compute(shape, lambda t, b, row: y(t, b, row) + cast(self.wide, bias(binary("add", row, first))),
                       name=f"{self.op}_{name}_bias")

    def row(self, gate: int, j: Any) -> Expr:
        return binary("add", binary("mul", self.size, gate), j)

    def run(self, make: Callable[[], Step]) -> list[Tensor]:
        """(outputs, the last of each state); make() gives the step: (t, b, j) to the new states."""
        shape = (simplified(self.steps + 1), self.batch, self.size)
        self.states = [placeholder(shape, self.wide, name=f"{self.op}_state{n}") for n in range(len(self.starts))]
        firsts = [compute((1, *shape[1:]), lambda t, b, j, s=s: const(0.0, self.wide) if s is None else cast(
            self.wide, s(b, j)), name=f"{self.op}_start{n}") for n, s in enumerate(self.starts)]
        if constant(self.steps) == 0:
            found = firsts
        else:
            step = make()

            def updated(t: Any, b: Any, j: Any) -> Any:
                new = tuple(step(t, b, j))
                if self.lengths is None:
                    return new
                runs = binary("le", cast("int64", t), self.end(b))
                return tuple(select(runs, e, self.before(n, t, b, j)) for n, e in enumerate(new))
            updates = compute(shape, updated, name=f"{self.op}_step")
            several = list(updates) if isinstance(updates, tuple) else [updates]
            result = scan(firsts, several, self.states, inputs=[self.x], name=f"{self.op}_steps")
            found = list(result) if isinstance(result, tuple) else [result]
        return [self._outputs(found[0]), *(compute(shape[1:], lambda b, j, y=y: cast(self.dtype, y(self.steps, b, j)),
                                                   name=f"{self.op}_last{n}") for n, y in enumerate(found))]

    def _outputs(self, states: Tensor) -> Tensor:
        """The states, at the steps of x that they belong to; 0 behind the end of a sequence."""
        if constant(self.steps) == 0:
            return compute((0, self.batch, self.size), lambda t, b, j: const(0.0, self.dtype), name=self.op)

        def at(t: Any, b: Any, j: Any) -> Expr:
            last = self.end(b) - 1
            own = cast(last.dtype, t)
            if self.lengths is None:
                number = binary("sub", self.steps, t) if self.reverse else binary("add", t, 1)
                return cast(self.dtype, states(number, b, j))
            value = cast(self.dtype, states(binary("add", last - own if self.reverse else own, 1), b, j))
            return if_then_else(all_of(binary("le", own, last)), value, const(0.0, self.dtype))
        return compute((self.steps, self.batch, self.size), at, name=self.op)


def rnn(x: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor | None = None, recurrent_bias: Tensor | None = None,
        start: Tensor | None = None, lengths: Tensor | None = None, *, nonlinearity: Activation = "tanh",
        reverse: bool = False, clip: float | None = None) -> tuple[Tensor, Tensor]:
    """(y, last): h = tanh(weight x + bias + recurrent h + recurrent_bias) for each step; or another activation.

    y: T[l, b, h], the state after each step; last: T[b, h]. Raises TensorExpressionError where extents differ.
    """
    op = "rnn"
    activation, = _functions(op, [nonlinearity], 1, clip, "nonlinearity")
    layer = _Layer(op, 1, x, weight, recurrent, bias, recurrent_bias, lengths, reverse, {"start": start})

    def make() -> Step:
        product = layer.product("product", layer.rows, 0, lambda t, b, j: layer.before(0, t, b, j))

        def step(t: Any, b: Any, j: Any) -> Sequence[Expr]:
            return [activation(layer.input(t, b, j) + product(t, b, j))]
        return step
    y, last = layer.run(make)
    return y, last


def gru(x: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor | None = None, recurrent_bias: Tensor | None = None,
        start: Tensor | None = None, lengths: Tensor | None = None, *, reset_after: bool = True,
        reverse: bool = False, activations: Sequence[Activation] = ("sigmoid", "tanh"),
        clip: float | None = None) -> tuple[Tensor, Tensor]:
    """(y, last): h = (1 - z) * n + z * h for each step, with the gates r, z, n in this order.

    r and z = sigmoid(W x + bias + R h + recurrent_bias); n = tanh(W x + bias + r * (R h + recurrent_bias)), or
    without reset_after tanh(W x + bias + R (r * h) + recurrent_bias), as in the paper. y: T[l, b, h]; last: T[b, h].
    Source: Cho and others (2014). Raises TensorExpressionError where extents differ.
    """
    of_gate, of_new = _functions("gru", activations, 2, clip)
    layer = _Layer("gru", 3, x, weight, recurrent, bias, recurrent_bias, lengths, reverse, {"start": start})

    def make() -> Step:
        rows = layer.rows if reset_after else simplified(layer.size * 2)
        product = layer.product("product", rows, 0, lambda t, b, j: layer.before(0, t, b, j))

        def gate(number: int, t: Any, b: Any, j: Any) -> Expr:
            row = layer.row(number, j)
            return of_gate(layer.input(t, b, row) + product(t, b, row))
        if not reset_after:
            kept = compute((simplified(layer.steps + 1), layer.batch, layer.size),
                           lambda t, b, j: if_then_else(binary("gt", t, 0), gate(0, t, b, j) * layer.before(
                               0, t, b, j), const(0.0, layer.wide)), name="gru_reset")
            inner = layer.product("inner", layer.size, simplified(layer.size * 2), lambda t, b, j: kept(t, b, j))

        def step(t: Any, b: Any, j: Any) -> Sequence[Expr]:
            row = layer.row(2, j)
            more = gate(0, t, b, j) * product(t, b, row) if reset_after else inner(t, b, j)
            new = of_new(layer.input(t, b, row) + more)
            z = gate(1, t, b, j)
            return [(1.0 - z) * new + z * layer.before(0, t, b, j)]
        return step
    y, last = layer.run(make)
    return y, last


def lstm(x: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor | None = None, recurrent_bias: Tensor | None = None,
         start: Tensor | None = None, start_cell: Tensor | None = None, lengths: Tensor | None = None,
         peepholes: Tensor | None = None, *, reverse: bool = False,
         activations: Sequence[Activation] = ("sigmoid", "tanh", "tanh"), clip: float | None = None,
         coupled: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """(y, last, last cell): c = f * c + i * g and h = o * tanh(c) for each step, with the gates i, f, g, o in order.

    i, f and o = sigmoid(W x + bias + R h + recurrent_bias), g the tanh of its own. y: T[l, b, h]; last, last cell:
    T[b, h]. peepholes: T[3 * h], by which i and f read the cell, and o the new one. coupled: f is 1 - i. activations:
    of the gates, of g, of the cell that is shown. Source: Hochreiter and Schmidhuber (1997), with the forget gate and
    the peepholes of Gers and others (2000). Raises TensorExpressionError where extents differ.
    """
    of_gate, of_new, of_cell = _functions("lstm", activations, 3, clip)
    layer = _Layer("lstm", 4, x, weight, recurrent, bias, recurrent_bias, lengths, reverse,
                   {"start": start, "start_cell": start_cell})

    if peepholes is not None:
        check_tensors("lstm", peepholes=peepholes)
        check_rank("lstm", "peepholes", peepholes, 1)
        check_extent("lstm", "the extent of peepholes", peepholes.shape[0], simplified(layer.size * 3))

    def make() -> Step:
        product = layer.product("product", layer.rows, 0, lambda t, b, j: layer.before(0, t, b, j))

        def step(t: Any, b: Any, j: Any) -> Sequence[Expr]:
            def read(gate: int, cell: Expr) -> Expr:
                row = layer.row(gate, j)
                e = layer.input(t, b, row) + product(t, b, row)
                if peepholes is None or gate == 2:
                    return e
                return e + cast(e.dtype, peepholes(layer.row(min(gate, 2), j))) * cell
            before = layer.before(1, t, b, j)
            i, g = of_gate(read(0, before)), of_new(read(2, before))
            f = 1.0 - i if coupled else of_gate(read(1, before))
            cell = f * before + i * g
            return [of_gate(read(3, cell)) * of_cell(cell), cell]
        return step
    y, last, cell = layer.run(make)
    return y, last, cell


def selective_scan(x: Tensor, delta: Tensor, decay: Tensor, b: Tensor, c: Tensor, skip: Tensor | None = None,
                   start: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """(y, last): h = exp(delta * decay) * h + delta * b * x and y = sum over n of c * h, + skip * x, step by step.

    x, delta, y: T[b, l, d]; decay: T[d, n]; b, c: T[b, l, n]; skip: T[d]; start, last: the states T[b, d, n]; start: 0
    unless given. Source: Gu and Dao, Mamba (2023). Raises TensorExpressionError where extents differ.
    """
    op = "selective_scan"
    check_tensors(op, x=x, delta=delta, decay=decay, b=b, c=c)
    for name, t, rank in (("x", x, 3), ("decay", decay, 2)):
        check_rank(op, name, t, rank)
    (batch, steps, width), states = x.shape, decay.shape[1]
    wanted: dict[str, tuple[Tensor | None, tuple[Any, ...]]] = {
        "delta": (delta, x.shape), "decay": (decay, (width, states)), "b": (b, (batch, steps, states)),
        "c": (c, (batch, steps, states)), "skip": (skip, (width,)), "start": (start, (batch, width, states))}
    for name, (given, shape) in wanted.items():
        if given is not None:
            check_tensors(op, **{name: given})
            check_rank(op, name, given, len(shape))
            for n, (found, extent) in enumerate(zip(given.shape, shape)):
                check_extent(op, f"extent {n} of {name}", found, extent, f"x has the shape {shape_text(x.shape)}")
    dtype = common_type(op, x, *(t for t, _ in wanted.values() if t is not None))
    check_kind(op, "an operand", dtype, FLOAT)
    wide = accumulator(dtype)
    full = (simplified(steps + 1), batch, width, states)
    state = placeholder(full, wide, name=f"{op}_state")
    first = compute((1, *full[1:]), lambda t, i, d, n: const(0.0, wide) if start is None else cast(
        wide, start(i, d, n)), name=f"{op}_start")

    def at(tensor: Tensor, i: Any, t: Any, last: Any) -> Expr:
        return if_then_else(binary("gt", t, 0), cast(wide, tensor(i, binary("sub", t, 1), last)), const(0.0, wide))

    def updated(t: Any, i: Any, d: Any, n: Any) -> Expr:
        step = at(delta, i, t, d)
        return _F["exp"](step * cast(wide, decay(d, n))) * state(binary("sub", t, 1), i, d, n) + step * at(
            b, i, t, n) * at(x, i, t, d)
    found = first
    if constant(steps) != 0:
        found = scan([first], [compute(full, updated, name=f"{op}_step")], [state], inputs=[x], name=f"{op}_steps")
    k = reduction_axis(states, "n")
    total = contraction(f"{op}_sum", x.shape, lambda i, t, d: (
        c(i, t, k), found(t if constant(steps) == 0 else binary("add", t, 1), i, d, k)), [k], wide)

    def output(i: Any, t: Any, d: Any) -> Expr:
        e: Expr = total(i, t, d)
        return cast(dtype, e if skip is None else e + cast(wide, skip(d)) * cast(wide, x(i, t, d)))
    return (compute(x.shape, output, name=op), compute((batch, width, states), lambda i, d, n: cast(dtype, found(
        steps, i, d, n)), name=f"{op}_last"))


__all__ = ["gru", "lstm", "rnn", "selective_scan"]
