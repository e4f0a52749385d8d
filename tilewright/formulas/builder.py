"""What elementary functions are written with: the same formula in float32 and float64, scalar and vector."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tilewright.support.names import NameSupply
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import if_then_else
from tilewright.tir.buffer import Buffer, Load, decl_buffer
from tilewright.tir.expr import Binary, Broadcast, Call, Cast, Expr, FloatImm, IntImm, Let, Not, Ramp, Select, Var
from tilewright.tir.node import substitute
from tilewright.tir.stmt import SERIAL, Allocate, For, IfThenElse, LetStmt, Stmt, Store, While, seq


class Cpu(NamedTuple):
    """What formulas ask of a CPU: fused multiply-adds, and one instruction for x * 2**k."""
    fma: bool = False
    ldexp: bool = False


@dataclass(frozen=True)
class Assign:
    """A step: var is value."""
    var: Var
    value: Expr

    def around(self, body: Stmt) -> Stmt:
        """body with what the step defines."""
        return LetStmt(self.var, self.value, body)


@dataclass(frozen=True)
class Repeat:
    """A step of scalars: outs are `first`, and as long as the condition on outs holds become `following`."""
    outs: tuple[Var, ...]
    first: tuple[Expr, ...]
    condition: Expr
    following: tuple[Expr, ...]

    def around(self, body: Stmt) -> Stmt:
        """body with what the step defines."""
        states = [decl_buffer((1,), v.dtype, v.name, scope="local") for v in self.outs]
        now = {v: Load(b, (IntImm(0),)) for v, b in zip(self.outs, states)}
        news = [Var(v.name, v.dtype) for v in self.outs]
        step = seq([Store(b, v, (IntImm(0),)) for b, v in zip(states, news)])
        for v, e in reversed(list(zip(news, self.following))):
            step = LetStmt(v, substitute(e, now), step)
        for v, e in reversed(list(now.items())):
            body = LetStmt(v, e, body)
        start = [Store(b, e, (IntImm(0),)) for b, e in zip(states, self.first)]
        return _allocated(states, seq([*start, While(substitute(self.condition, now), step), body]))


@dataclass(frozen=True)
class Rare:
    """A step: outs are `usual`, but in the lanes of mask, which are few, the results of a scalar formula of args."""
    outs: tuple[Var, ...]
    mask: Expr
    formula: Formula
    args: tuple[Expr, ...]
    usual: tuple[Expr, ...]

    def values(self) -> list[tuple[Var, Expr]]:
        """(out, its value as an expression) for scalars."""
        found = []
        for k, (out, usual) in enumerate(zip(self.outs, self.usual)):
            value = self.formula.expr(k)
            for param, arg in zip(self.formula.params, self.args):
                value = Let(param, arg, value)
            found.append((out, if_then_else(self.mask, value, usual)))
        return found

    def lane_by_lane(self) -> tuple[tuple[Var, ...], Stmt, tuple[Expr, ...]]:
        """(parameters for args, mask and usual, a statement with a loop over the lanes, the results after it)."""
        lanes, k = dt.lanes_of(self.mask.dtype), Var("k")
        params = tuple(Var(f"x{n}", e.dtype) for n, e in enumerate((*self.args, self.mask, *self.usual)))
        rows = [decl_buffer((lanes,), dt.element_of(v.dtype), v.name, scope="local") for v in params]
        every = Ramp(IntImm(0), IntImm(1), lanes) if lanes > 1 else IntImm(0)
        kept = rows[len(self.args) + 1:]
        one = seq([Store(row, e, (k,)) for row, e in zip(kept, self.formula.results)])
        for step in reversed(self.formula.steps):
            assert not isinstance(step, Rare)
            one = step.around(one)
        for param, row in reversed(list(zip(self.formula.params, rows))):
            one = LetStmt(param, Load(row, (k,)), one)
        loop = For(k, IntImm(0), IntImm(lanes), SERIAL, IfThenElse(Load(rows[len(self.args)], (k,)), one))
        stores = [Store(row, v, (every,)) for row, v in zip(rows, params)]
        return params, _allocated(rows, seq([*stores, loop])), tuple(Load(row, (every,)) for row in kept)


def _allocated(buffers: Sequence[Buffer], body: Stmt) -> Stmt:
    for b in reversed(buffers):
        body = Allocate(b, body)
    return body


@dataclass(frozen=True)
class Formula:
    """A function without effects: params, what is computed step by step, and the results.

    No other formula has the same name, dtypes of params and dtypes of results, for one CPU.

    Its floating-point operations are exactly those that are written: a back end must not contract or reorder them.
    """
    name: str
    params: tuple[Var, ...]
    steps: tuple[Assign | Repeat | Rare, ...]
    results: tuple[Expr, ...]

    def expr(self, result: int = 0) -> Expr:
        """One of the results of a formula of scalars, which repeats nothing, as an expression of the parameters."""
        out = self.results[result]
        for s in reversed(self.steps):
            assert not isinstance(s, Repeat)
            for var, value in [(s.var, s.value)] if isinstance(s, Assign) else s.values():
                out = Let(var, value, out)
        return out


_COMPARE = {"olt": "lt", "ole": "le", "ogt": "gt", "oge": "ge", "oeq": "eq", "une": "ne"}


class Builder:
    """Writes the steps of one formula on the dtype `f`: float32, float64 or a vector of them.

    `i` is the integer type of the same shape, `m` that of its conditions. `fma` is one rounding only where the CPU has
    the instruction. Equal operations on equal operands become one step.
    """

    def __init__(self, f: str, cpu: Cpu = Cpu()) -> None:
        self.cpu = cpu
        self.steps: list[Assign | Repeat | Rare] = []
        self.names = NameSupply()
        self._known: dict[tuple[object, ...], Expr] = {}
        self.set_type(f)

    def set_type(self, f: str) -> None:
        """Work on f from here on."""
        element, self.lanes = dt.parse(f)
        self.f, self.is_double = f, element == "float64"
        self.i = dt.with_lanes("int64" if self.is_double else "int32", self.lanes)
        self.m = dt.with_lanes("bool", self.lanes)
        self.mantissa_bits = 52 if self.is_double else 23
        self.bias = 1023 if self.is_double else 127

    def formula(self, name: str, params: Sequence[Var], *results: Expr) -> Formula:
        """What was written, as the function `name`."""
        return Formula(name, tuple(params), tuple(self.steps), results)

    def param(self, name: str, dtype: str = "") -> Var:
        """A parameter, of type f if no other is given."""
        return Var(self.names.fresh(name), dtype or self.f)

    def value(self, key: tuple[object, ...], make: Callable[[], Expr]) -> Expr:
        """The variable that holds make(); the one that is there already, for this key."""
        if key not in self._known:
            e = make()
            var = Var(self.names.fresh("v"), e.dtype)
            self.steps.append(Assign(var, e))
            self._known[key] = var
        return self._known[key]

    def rare(self, mask: Expr, formula: Formula, args: Sequence[Expr], *usual: Expr) -> tuple[Var, ...]:
        """`usual`, but the results of the scalar formula of args in the lanes of mask, which are few."""
        outs = tuple(Var(self.names.fresh("v"), e.dtype) for e in usual)
        self.steps.append(Rare(outs, mask, formula, tuple(args), usual))
        return outs

    def repeat(self, first: Sequence[Expr], condition: Callable[..., Expr],
               following: Callable[..., Sequence[Expr]]) -> tuple[Var, ...]:
        """`first`, and as long as the condition of the values holds, those that follow them."""
        outs = tuple(Var(self.names.fresh("v"), e.dtype) for e in first)
        self.steps.append(Repeat(outs, tuple(first), condition(*outs), tuple(following(*outs))))
        return outs

    def pick(self, single: float, double: float) -> float:
        """The value for this precision."""
        return double if self.is_double else single

    def c(self, value: float) -> Expr:
        """A floating-point constant."""
        return self._constant(self.f, repr(value), lambda element: FloatImm(value, element))

    def n(self, value: int) -> Expr:
        """An integer constant."""
        return self._constant(self.i, value, lambda element: IntImm(value, element))

    def _constant(self, dtype: str, key: object, make: Callable[[str], Expr]) -> Expr:
        element, lanes = dt.parse(dtype)
        if (dtype, key) not in self._known:
            one = make(element)
            self._known[dtype, key] = one if lanes == 1 else Broadcast(one, lanes)
        return self._known[dtype, key]

    def binary(self, op: str, a: Expr, b: Expr) -> Expr:
        """An operator of BINARY."""
        return self.value((op, a, b), lambda: Binary(op, a, b))

    def cast(self, dtype: str, a: Expr) -> Expr:
        """a converted; between integers of one size, its bits."""
        return self.value((dtype, a), lambda: Cast(dtype, a))

    def bare(self, op: str, a: Expr, b: Expr) -> Expr:
        """A division or shift whose operands need no guard."""
        return self.value(("bare", op, a, b), lambda: Call("unguarded", (Binary(op, a, b),), a.dtype))

    def bare_cast(self, dtype: str, a: Expr) -> Expr:
        """A float converted to an integer, which the type has."""
        return self.value(("bare", dtype, a), lambda: Call("unguarded", (Cast(dtype, a),), dtype))

    def call(self, name: str, *args: Expr, dtype: str = "") -> Expr:
        """The function `name` of the table of operators, of the type of its last argument if no other is given."""
        return self.value((name, *args, dtype), lambda: Call(name, args, dtype or args[-1].dtype))

    def add(self, a: Expr, b: Expr) -> Expr: return self.binary("add", a, b)
    def sub(self, a: Expr, b: Expr) -> Expr: return self.binary("sub", a, b)
    def mul(self, a: Expr, b: Expr) -> Expr: return self.binary("mul", a, b)
    def div(self, a: Expr, b: Expr) -> Expr: return self.binary("div", a, b)
    def neg(self, a: Expr) -> Expr: return self.sub(self.c(-0.0), a)

    def fma(self, a: Expr, b: Expr, c: Expr) -> Expr:
        """a * b + c, in one rounding where the CPU can."""
        return self.call("fma", a, b, c) if self.cpu.fma else self.add(self.mul(a, b), c)

    def abs(self, a: Expr) -> Expr: return self.call("abs", a)
    def sqrt(self, a: Expr) -> Expr: return self.call("sqrt", a)
    def copysign(self, magnitude: Expr, sign: Expr) -> Expr: return self.call("copysign", magnitude, sign)

    def iadd(self, a: Expr, b: Expr) -> Expr: return self.binary("add", a, b)
    def isub(self, a: Expr, b: Expr) -> Expr: return self.binary("sub", a, b)
    def imul(self, a: Expr, b: Expr) -> Expr: return self.binary("mul", a, b)
    def iand(self, a: Expr, b: Expr) -> Expr: return self.binary("bitand", a, b)
    def ior(self, a: Expr, b: Expr) -> Expr: return self.binary("bitor", a, b)
    def shl(self, a: Expr, bits: int | Expr) -> Expr: return self.binary("shl", a, self._amount(bits))
    def shr(self, a: Expr, bits: int) -> Expr: return self.binary("shr", a, self.n(bits))

    def ushr(self, a: Expr, bits: int | Expr) -> Expr:
        """a shifted right as an unsigned number."""
        amount = self.cast(f"u{self.i}", self._amount(bits)) if isinstance(bits, Expr) else self._constant(
            f"u{self.i}", bits, lambda element: IntImm(bits, element))
        return self.cast(self.i, self.binary("shr", self.cast(f"u{self.i}", a), amount))

    def _amount(self, bits: int | Expr) -> Expr:
        return bits if isinstance(bits, Expr) else self.n(bits)

    def bits(self, a: Expr) -> Expr: return self.call("reinterpret", a, dtype=self.i)
    def unbits(self, a: Expr) -> Expr: return self.call("reinterpret", a, dtype=self.f)
    def to_float(self, a: Expr) -> Expr: return self.cast(self.f, a)

    def cmp(self, predicate: str, a: Expr, b: Expr) -> Expr:
        """A comparison that is false for NaN ("olt", "oeq", ...), or "une" and "uno" (one is NaN), true for it."""
        if predicate != "uno":
            return self.binary(_COMPARE[predicate], a, b)
        nan = self.call("isnan", a, dtype=self.m)
        return nan if a is b else self.either(nan, self.call("isnan", b, dtype=self.m))

    def icmp(self, op: str, a: Expr, b: Expr) -> Expr:
        """A comparison of integers by the operator's name: "eq", "lt", ..."""
        return self.binary(op, a, b)

    def below(self, a: Expr, b: Expr) -> Expr:
        """a < b as unsigned numbers."""
        return self.binary("lt", self.cast(f"u{self.i}", a), self.cast(f"u{self.i}", b))

    def both(self, a: Expr, b: Expr) -> Expr: return self.binary("and", a, b)
    def either(self, a: Expr, b: Expr) -> Expr: return self.binary("or", a, b)
    def flip(self, a: Expr) -> Expr: return self.value(("not", a), lambda: Not(a))
    def differ(self, a: Expr, b: Expr) -> Expr: return self.binary("ne", a, b)
    def select(self, test: Expr, a: Expr, b: Expr) -> Expr:
        return a if a is b else self.value(("select", test, a, b), lambda: Select(test, a, b))

    iselect = select

    def clamp(self, x: Expr, low: float, high: float) -> Expr:
        """x held between low and high; NaN stays."""
        return self.at_least(self.at_most(x, high), low)

    def at_most(self, x: Expr, high: float) -> Expr:
        """The smaller of x and high; NaN stays."""
        return self.select(self.cmp("ogt", x, self.c(high)), self.c(high), x)

    def at_least(self, x: Expr, low: float) -> Expr:
        """The larger of x and low; NaN stays."""
        return self.select(self.cmp("olt", x, self.c(low)), self.c(low), x)

    def poly(self, x: Expr, coefficients: Sequence[float]) -> Expr:
        """coefficients[0] + coefficients[1] * x + ..., by Horner's rule."""
        out = self.c(coefficients[-1])
        for value in reversed(coefficients[:-1]):
            out = self.fma(out, x, self.c(value))
        return out

    def poly_by_pairs(self, x: Expr, square: Expr, coefficients: Sequence[float]) -> Expr:
        """`poly` with square = x * x at hand: as many operations, half of them one after the other."""
        pairs = [self.poly(x, coefficients[k:k + 2]) for k in range(0, len(coefficients), 2)]
        out = pairs[-1]
        for pair in reversed(pairs[:-1]):
            out = self.fma(out, square, pair)
        return out

    def nearest(self, x: Expr) -> tuple[Expr, Expr]:
        """(x rounded to an integer, as float and as integer), for |x| < 2**21 (2**50); NaN gives any integer.

        Adding 1.5 * 2**mantissa_bits leaves the integer in the low bits, which needs no conversion instruction.
        """
        return self._nearest(self.add(x, self.c(1.5 * 2.0**self.mantissa_bits)))

    def nearest_multiple(self, x: Expr, factor: float) -> tuple[Expr, Expr]:
        """`nearest` of x * factor."""
        return self._nearest(self.fma(x, self.c(factor), self.c(1.5 * 2.0**self.mantissa_bits)))

    def _nearest(self, shifted: Expr) -> tuple[Expr, Expr]:
        offset = (self.bias + self.mantissa_bits << self.mantissa_bits) + (1 << self.mantissa_bits - 1)
        whole = self.sub(shifted, self.c(1.5 * 2.0**self.mantissa_bits))
        return whole, self.isub(self.bits(shifted), self.n(offset))

    def nearest_any(self, x: Expr) -> tuple[Expr, Expr]:
        """`nearest` for |x| < 2**mantissa_bits: (x rounded, an integer with the same last bit)."""
        magic = self.copysign(self.c(2.0**self.mantissa_bits), x)
        shifted = self.add(x, magic)
        return self.sub(shifted, magic), self.bits(shifted)

    def power_of_two(self, k: Expr) -> Expr:
        """2**k for an integer k in the range of normal numbers."""
        return self.unbits(self.shl(self.iadd(k, self.n(self.bias)), self.mantissa_bits))

    def scale(self, x: Expr, k: Expr) -> Expr:
        """x * 2**k for |k| up to twice the exponent range, rounded once (twice where the result is denormal)."""
        if self.cpu.ldexp:
            return self.call("ldexp", k, x)
        half = self.shr(k, 1)
        return self.mul(self.mul(x, self.power_of_two(half)), self.power_of_two(self.isub(k, half)))

    def upper(self, x: Expr) -> Expr:
        """x with the lower half of its mantissa cleared, so that products of two such values are exact."""
        return self.unbits(self.iand(self.bits(x), self.n(-(1 << 32) if self.is_double else -(1 << 12))))

    def wide(self) -> Builder:
        """A builder on float64 that adds to the same formula."""
        out = Builder(dt.with_lanes("float64", self.lanes), self.cpu)
        out.steps, out.names, out._known = self.steps, self.names, self._known
        return out

    def to_double(self, x: Expr) -> Expr: return self.cast(dt.with_lanes("float64", self.lanes), x)
    def from_double(self, x: Expr) -> Expr: return self.cast(self.f, x)
