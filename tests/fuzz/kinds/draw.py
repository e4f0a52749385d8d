"""Random scalar expressions: few names, constants near the limits, forms for which simplifiers have laws."""
from __future__ import annotations

import random
from collections.abc import Sequence

from .scalars import ARITHMETIC, COMPARISONS, FLOATS, INTEGERS, SIGNED, Scalar, bits, const, limits

_WEIGHTS = {"add": 5, "sub": 5, "mul": 4, "floordiv": 4, "floormod": 4, "truncdiv": 2, "truncmod": 2, "shl": 2,
            "shr": 3, "and": 2, "or": 1, "xor": 1, "min": 2, "max": 2}
_DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")


def number(rng: random.Random, dtype: str) -> int:
    """An integer of dtype: mostly small, a power of two, or near a limit."""
    low, high = limits(dtype)
    kind = rng.random()
    if kind < 0.5:
        value = rng.choice([0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 16, -1, -1, -2, -3, -4, -8])
    elif kind < 0.75:
        value = rng.choice([1, -1]) * (1 << rng.randrange(bits(dtype))) + rng.choice([0, 0, -1, 1])
    elif kind < 0.95:
        value = rng.choice([low, low, low + 1, high, high, high - 1, low // 2, high // 2, high // 2 + 1])
    else:
        value = rng.randint(low, high)
    return min(max(value, low), high)


def divisor(rng: random.Random, dtype: str) -> int:
    return number(rng, dtype) or rng.choice([2, 3])


def has_names(e: Scalar) -> bool:
    return e.op == "name" or any(has_names(a) for a in e.args)


class Drawer:
    """Expressions over the names of a pool; an expression mostly keeps to two or three of them."""

    def __init__(self, rng: random.Random, pool: Sequence[Scalar]) -> None:
        self.rng, self.pool = rng, list(pool)
        self.few: list[Scalar] = list(pool)
        self.made: dict[str, list[Scalar]] = {}

    def whole(self, dtype: str, depth: int) -> Scalar:
        """A new expression."""
        self.few = self.rng.sample(self.pool, min(self.rng.choice([1, 2, 2, 3]), len(self.pool)))
        self.made = {}
        return self.draw(dtype, depth)

    def draw(self, dtype: str, depth: int) -> Scalar:
        rng = self.rng
        known = self.made.setdefault(dtype, [])
        if known and depth < 3 and rng.random() < 0.2:
            return rng.choice(known)
        if depth <= 0:
            out = self.leaf(dtype)
        elif dtype == "bool":
            out = self.condition(depth)
        elif dtype in FLOATS:
            out = self.float(dtype, depth)
        else:
            out = self.integer(dtype, depth)
        known.append(out)
        return out

    def leaf(self, dtype: str) -> Scalar:
        rng = self.rng
        same = [s for s in self.few if s.dtype == dtype] or [s for s in self.pool if s.dtype == dtype]
        if dtype in INTEGERS and rng.random() < 0.25:
            return const(number(rng, dtype), dtype)
        if same and (rng.random() < 0.8 or dtype not in INTEGERS):
            return rng.choice(same)
        if dtype in INTEGERS:
            return Scalar("cast", dtype, (rng.choice(self.few),))
        if dtype == "bool":
            a = rng.choice(self.few)
            return a if a.dtype == "bool" else Scalar(rng.choice(COMPARISONS), "bool", (a, self.constant(a.dtype)))
        return Scalar("cast", dtype, (rng.choice([s for s in self.pool if s.dtype in INTEGERS]),))

    def constant(self, dtype: str) -> Scalar:
        rng = self.rng
        if dtype in INTEGERS:
            return const(number(rng, dtype), dtype)
        if dtype == "bool":
            return const(rng.random() < 0.5, dtype)
        large = 300.0 if dtype == "float16" else 2.0 ** 31
        return const(rng.choice([0.0, 1.0, -1.5, 127.0, 128.0, -129.0, 65504.0, large]), dtype)

    def integer(self, dtype: str, depth: int) -> Scalar:
        rng = self.rng
        kind = rng.random()
        if kind < 0.5:
            return self.operation(dtype, depth)
        if kind < 0.66:
            return self.shaped(dtype, depth)
        if kind < 0.78:
            source = rng.choice([*INTEGERS, *INTEGERS, *FLOATS, "bool"])
            return Scalar("cast", dtype, (self.draw(source, depth - 1),))
        if kind < 0.92:
            return self.choice(dtype, depth)
        op = rng.choice(["neg", "invert", "abs"] if dtype in SIGNED else ["invert", "abs"])
        return Scalar(op, dtype, (self.draw(dtype, depth - 1),))

    def operation(self, dtype: str, depth: int) -> Scalar:
        rng = self.rng
        op = rng.choices(ARITHMETIC, [_WEIGHTS[op] for op in ARITHMETIC])[0]
        a = self.draw(dtype, depth - 1)
        if rng.random() < 0.55:
            b = const(self.right_number(op, dtype), dtype)
            turned = rng.random() < 0.15 and (op not in _DIVISIONS or has_names(a))
            return Scalar(op, dtype, (b, a) if turned else (a, b))
        b = self.draw(dtype, depth - rng.choice([1, 2]))
        if op in _DIVISIONS and not has_names(b):        # a divisor that is the constant 0 is refused
            b = const(divisor(rng, dtype), dtype)
        return Scalar(op, dtype, (a, b))

    def right_number(self, op: str, dtype: str) -> int:
        rng, low = self.rng, limits(dtype)[0]
        if op in ("shl", "shr"):
            most = min(bits(dtype) + 1, limits(dtype)[1])
            return rng.choice([rng.randint(0, bits(dtype) - 1), rng.randint(0, 3), bits(dtype) - 1, most,
                               -1 if low else 0])
        return divisor(rng, dtype) if "div" in op or "mod" in op else number(rng, dtype)

    def choice(self, dtype: str, depth: int) -> Scalar:
        condition = self.draw("bool", depth - 1)
        return Scalar(self.rng.choice(["select", "if", "if"]), dtype,
                      (condition, self.draw(dtype, depth - 1), self.draw(dtype, depth - 1)))

    def shaped(self, dtype: str, depth: int) -> Scalar:
        """(x op c1) op c2 and the like."""
        rng = self.rng
        x, y = self.draw(dtype, depth - 2), self.draw(dtype, depth - 2)
        c = [const(divisor(rng, dtype), dtype) for _ in range(3)]
        if rng.random() < 0.5:
            c[1] = c[0]

        def op(name: str, a: Scalar, b: Scalar) -> Scalar:
            return Scalar(name, dtype, (a, b))
        div, mod = rng.choice([("floordiv", "floormod"), ("truncdiv", "truncmod")])
        forms = (
            lambda: op(div, op("mul", x, c[0]), c[1]), lambda: op(mod, op("mul", x, c[0]), c[1]),
            lambda: op(div, op("add", op("mul", x, c[0]), y), c[1]),
            lambda: op(mod, op("add", op("mul", x, c[0]), y), c[1]),
            lambda: op("add", op("mul", op(div, x, c[0]), c[1]), op(mod, x, c[0])),
            lambda: op(div, op(div, x, c[0]), c[1]), lambda: op(mod, op(mod, x, c[0]), c[1]),
            lambda: op(mod, op(div, x, c[0]), c[2]), lambda: op(div, op(mod, x, c[0]), c[2]),
            lambda: op(rng.choice(["min", "max"]), op("add", x, c[0]), op("add", y, c[1])),
            lambda: op("sub", op("add", x, y), x), lambda: op("sub", op(rng.choice(["min", "max"]), x, y), y),
            lambda: op("shr", op("shl", x, c[0]), c[1]), lambda: op("shl", op("shr", x, c[0]), c[1]),
            lambda: op("and", op(rng.choice(["and", "or", "add"]), x, c[0]), c[2]),
            lambda: op("sub", op("mul", x, c[0]), op("mul", x, c[2])),
            lambda: op(rng.choice(["min", "max"]), op(rng.choice(["min", "max"]), x, c[0]), c[2]))
        return rng.choice(forms)()

    def condition(self, depth: int) -> Scalar:
        rng = self.rng
        kind = rng.random()
        if kind < 0.65:
            return self.comparison(depth)
        if kind < 0.85:
            both = (self.draw("bool", depth - 1), self.draw("bool", depth - 1))
            return Scalar(rng.choice(["all", "any"]), "bool", both)
        if kind < 0.95:
            return Scalar("not", "bool", (self.draw("bool", depth - 1),))
        return Scalar("cast", "bool", (self.draw(rng.choice([*INTEGERS, *FLOATS]), depth - 1),))

    def comparison(self, depth: int) -> Scalar:
        rng = self.rng
        dtype = rng.choice([*[s.dtype for s in self.few if s.dtype in INTEGERS] * 3, *INTEGERS, rng.choice(FLOATS)])
        a, op = self.draw(dtype, depth - 1), rng.choice(COMPARISONS)
        if rng.random() < 0.3 and dtype in INTEGERS:         # x + c1 < y + c2
            a = Scalar(rng.choice(["add", "sub", "mul"]), dtype, (a, self.constant(dtype)))
        b = self.constant(dtype) if rng.random() < 0.5 else self.draw(dtype, depth - 1)
        return Scalar(op, "bool", (a, b))

    def float(self, dtype: str, depth: int) -> Scalar:
        """A cast of an integer or of a float; a sum, a minimum, a choice. No products: a * b + c may be contracted."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.6:
            return Scalar("cast", dtype, (self.draw(rng.choice([*INTEGERS, "bool", *FLOATS]), depth - 1),))
        if kind < 0.8:
            op = rng.choice(["add", "sub", "min", "max"])
            return Scalar(op, dtype, (self.draw(dtype, depth - 1), self.draw(dtype, depth - 2)))
        return self.choice(dtype, depth)
