"""A builder of elementary functions: the same formula in float32 and float64, scalar and vector."""
from __future__ import annotations

import copy
from collections.abc import Sequence

from tilewright.codegen.llvm.builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm.types import float_literal, lanes_of_type, splat, suffix, with_element


class MathBuilder(FunctionBuilder):
    """Emits the body of one function on the LLVM type `f` (float, double or a vector of them).

    `i` is the integer type of the same shape, `m` the mask type. Operations never carry fast-math flags:
    what is
    written is what is computed. `fma` is one rounding only where the CPU has the instruction (`exact_fma`).
    """

    def __init__(self, module: ModuleBuilder, f: str) -> None:
        super().__init__(module)
        self.exact_fma = "fma" in module.features
        self.set_type(f)

    def set_type(self, f: str) -> None:
        """Work on f from here on."""
        self.f = f
        self.lanes = lanes_of_type(f)
        self.is_double = "double" in f
        self.i = with_element(f, "i64" if self.is_double else "i32")
        self.m = with_element(f, "i1")
        self.mantissa_bits = 52 if self.is_double else 23
        self.bias = 1023 if self.is_double else 127

    def pick(self, single: float, double: float) -> float:
        """The value for this precision."""
        return double if self.is_double else single

    def c(self, value: float) -> str:
        """A floating-point constant."""
        return splat(self.f, float_literal(value, "float64" if self.is_double else "float32"))

    def n(self, value: int) -> str:
        """An integer constant."""
        return splat(self.i, str(value))

    def add(self, a: str, b: str) -> str: return self.value(f"fadd {self.f} {a}, {b}")
    def sub(self, a: str, b: str) -> str: return self.value(f"fsub {self.f} {a}, {b}")
    def mul(self, a: str, b: str) -> str: return self.value(f"fmul {self.f} {a}, {b}")
    def div(self, a: str, b: str) -> str: return self.value(f"fdiv {self.f} {a}, {b}")
    def neg(self, a: str) -> str: return self.value(f"fneg {self.f} {a}")

    def fma(self, a: str, b: str, c: str) -> str:
        """a * b + c, in one rounding where the CPU can."""
        if not self.exact_fma:
            return self.add(self.mul(a, b), c)
        return self.call("fma", a, b, c)

    def call(self, name: str, *args: str) -> str:
        """The LLVM intrinsic `name` on arguments of type f."""
        symbol = self.module.intrinsic(name, self.f, (self.f,) * len(args), (self.f,))
        return self.value(f"call {self.f} {symbol}({', '.join(f'{self.f} {a}' for a in args)})")

    def abs(self, a: str) -> str: return self.call("fabs", a)
    def sqrt(self, a: str) -> str: return self.call("sqrt", a)
    def copysign(self, magnitude: str, sign: str) -> str: return self.call("copysign", magnitude, sign)

    def iadd(self, a: str, b: str) -> str: return self.value(f"add {self.i} {a}, {b}")
    def isub(self, a: str, b: str) -> str: return self.value(f"sub {self.i} {a}, {b}")
    def iand(self, a: str, b: str) -> str: return self.value(f"and {self.i} {a}, {b}")
    def ior(self, a: str, b: str) -> str: return self.value(f"or {self.i} {a}, {b}")
    def shl(self, a: str, bits: int) -> str: return self.value(f"shl {self.i} {a}, {self.n(bits)}")
    def shr(self, a: str, bits: int) -> str: return self.value(f"ashr {self.i} {a}, {self.n(bits)}")
    def ushr(self, a: str, bits: int) -> str: return self.value(f"lshr {self.i} {a}, {self.n(bits)}")
    def bits(self, a: str) -> str: return self.value(f"bitcast {self.f} {a} to {self.i}")
    def unbits(self, a: str) -> str: return self.value(f"bitcast {self.i} {a} to {self.f}")
    def to_float(self, a: str) -> str: return self.value(f"sitofp {self.i} {a} to {self.f}")

    def cmp(self, predicate: str, a: str, b: str) -> str:
        """fcmp: "olt", "oeq", "uno", ..."""
        return self.value(f"fcmp {predicate} {self.f} {a}, {b}")

    def icmp(self, predicate: str, a: str, b: str) -> str:
        return self.value(f"icmp {predicate} {self.i} {a}, {b}")

    def both(self, a: str, b: str) -> str: return self.value(f"and {self.m} {a}, {b}")
    def either(self, a: str, b: str) -> str: return self.value(f"or {self.m} {a}, {b}")
    def flip(self, a: str) -> str: return self.value(f"xor {self.m} {a}, {splat(self.m, 'true')}")
    def select(self, test: str, a: str, b: str) -> str:
        return self.value(f"select {self.m} {test}, {self.f} {a}, {self.f} {b}")

    def iselect(self, test: str, a: str, b: str) -> str:
        return self.value(f"select {self.m} {test}, {self.i} {a}, {self.i} {b}")

    def clamp(self, x: str, low: float, high: float) -> str:
        """x held between low and high; NaN stays."""
        return self.at_least(self.at_most(x, high), low)

    def at_most(self, x: str, high: float) -> str:
        """The smaller of x and high; NaN stays."""
        return self.select(self.cmp("ogt", x, self.c(high)), self.c(high), x)

    def at_least(self, x: str, low: float) -> str:
        """The larger of x and low; NaN stays."""
        return self.select(self.cmp("olt", x, self.c(low)), self.c(low), x)

    def poly(self, x: str, coefficients: Sequence[float]) -> str:
        """coefficients[0] + coefficients[1] * x + ..., by Horner's rule."""
        out = self.c(coefficients[-1])
        for value in reversed(coefficients[:-1]):
            out = self.fma(out, x, self.c(value))
        return out

    def poly_by_pairs(self, x: str, square: str, coefficients: Sequence[float]) -> str:
        """`poly` with square = x * x at hand: as many operations, half of them one after the other."""
        pairs = [self.poly(x, coefficients[k:k + 2]) for k in range(0, len(coefficients), 2)]
        out = pairs[-1]
        for pair in reversed(pairs[:-1]):
            out = self.fma(out, square, pair)
        return out

    def nearest(self, x: str) -> tuple[str, str]:
        """(x rounded to an integer, as float and as integer), for |x| < 2**21 (2**50); NaN gives any integer.

        Adding 1.5 * 2**mantissa_bits leaves the integer in the low bits, which needs no conversion instruction.
        """
        return self._nearest(self.add(x, self.c(1.5 * 2.0**self.mantissa_bits)))

    def nearest_multiple(self, x: str, factor: float) -> tuple[str, str]:
        """`nearest` of x * factor."""
        return self._nearest(self.fma(x, self.c(factor), self.c(1.5 * 2.0**self.mantissa_bits)))

    def _nearest(self, shifted: str) -> tuple[str, str]:
        offset = (self.bias + self.mantissa_bits << self.mantissa_bits) + (1 << self.mantissa_bits - 1)
        whole = self.sub(shifted, self.c(1.5 * 2.0**self.mantissa_bits))
        return whole, self.isub(self.bits(shifted), self.n(offset))

    def nearest_any(self, x: str) -> tuple[str, str]:
        """`nearest` for |x| < 2**mantissa_bits: (x rounded, an integer with the same last bit)."""
        magic = self.copysign(self.c(2.0**self.mantissa_bits), x)
        shifted = self.add(x, magic)
        return self.sub(shifted, magic), self.bits(shifted)

    def same(self, a: str, b: str) -> str:
        """Lanes in which two masks agree."""
        return self.flip(self.value(f"xor {self.m} {a}, {b}"))

    def power_of_two(self, k: str) -> str:
        """2**k for an integer k in the range of normal numbers."""
        return self.unbits(self.shl(self.iadd(k, self.n(self.bias)), self.mantissa_bits))

    def scale(self, x: str, k: str) -> str:
        """x * 2**k for |k| up to twice the exponent range, rounded once (twice where the result is
        denormal).
        """
        if {"avx512f", "avx512dq", "avx512vl"} <= self.module.features:        # one instruction
            name = f"llvm.ldexp.{suffix(self.f)}.{suffix(with_element(self.f, 'i32'))}"
            exponents = with_element(self.f, "i32")
            small = k if not self.is_double else self.value(f"trunc {self.i} {k} to {exponents}")
            self.module.declare(name, self.f, f"{self.f}, {exponents}")
            return self.value(f"call {self.f} @{name}({self.f} {x}, {exponents} {small})")
        half = self.shr(k, 1)
        return self.mul(self.mul(x, self.power_of_two(half)), self.power_of_two(self.isub(k, half)))

    def upper(self, x: str) -> str:
        """x with the lower half of its mantissa cleared, so that products of two such values are exact."""
        return self.unbits(self.iand(self.bits(x), self.n(-(1 << 32) if self.is_double else -(1 << 12))))

    def to_double(self, x: str) -> tuple[MathBuilder, str]:
        """(a builder on float64 that adds to the same function, x as float64)."""
        wide = copy.copy(self)
        wide.set_type(with_element(self.f, "double"))
        return wide, self.value(f"fpext {self.f} {x} to {wide.f}")

    def from_double(self, x: str) -> str:
        return self.value(f"fptrunc {with_element(self.f, 'double')} {x} to {self.f}")
