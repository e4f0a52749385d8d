"""How much code a statement becomes: what LLVM's time depends on.

LLVM's selection, scheduling and allocation of registers take time that grows faster than the length of a block, and its
passes for loops time that grows faster than the number of loops around which one value is alive. So passes that copy
statements, and the one that makes vectors of many registers, stop at a limit: CPUs gain nothing by more.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.arith.linear import linear
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Binary, Broadcast, Call, Cast, Expr, IntImm, Not, Ramp, Select, Shuffle, Var
from tilewright.tir.node import Node, children, statements, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.stmt import PARALLEL, SERIAL, For, Stmt, Store, While
from tilewright.tir.symbols import expressions

MAX_CODE = 12288            # instructions that copies of unrolled loops may make of a function
LONG = 16384                # instructions from which on LLVM is to make no copies of loops itself
REGISTER_BITS = 512
DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")
FUNCTION = 40               # instructions of an elementary function
BRANCH = 10                 # of a choice between numbers of which one is read: blocks cost LLVM more than instructions
ELEMENT = 3                 # of a lane that is accessed by itself: its address, the access, its place in a vector
DIVISION = 4                # of an integer division, which has no vector form
CONVERSION = 16             # of a conversion from or to a type of 16 bits or fewer that the CPU has no arithmetic for
COPIES = 8                  # that LLVM makes of an innermost loop: two lengths of vectors, unrolled, and what is left
CHECKS = 16                 # instructions that choose among them
APART = 8                   # for an element of up to 16 bits that LLVM's vectors access by itself: no CPU gathers these
WRITTEN_OUT = 512           # instructions up to which LLVM writes the iterations of a loop out


def code_size(stmt: Stmt, features: Callable[[], frozenset[str]] = frozenset) -> int:
    """About the number of instructions that stmt becomes, with the copies that LLVM makes of loops.

    features: what the CPU has; asked for only where that matters.
    """
    return _Measure(features).sizes(stmt).copied


@dataclass(frozen=True)
class _Sizes:
    """What a statement becomes.

    - plain: instructions once LLVM has written short loops out; copied: once it has copied the innermost ones as well.
    - flat: nothing keeps LLVM from unrolling the loop around it and making vectors of it: scalars, and no loops but
      those that are written out.
    """
    plain: int
    copied: int
    flat: bool


class _Measure:
    """Sizes for a CPU."""

    def __init__(self, features: Callable[[], frozenset[str]]) -> None:
        self.features = features

    def sizes(self, stmt: Stmt) -> _Sizes:
        own = sum(self._size(n) for e in expressions(stmt) for n in walk(e))
        if isinstance(stmt, Store):
            own += self._access(stmt, stmt.value.dtype)
        below = [self.sizes(s) for s in children(stmt) if isinstance(s, Stmt)]
        plain, copied, flat = sum(b.plain for b in below), sum(b.copied for b in below), all(b.flat for b in below)
        if isinstance(stmt, For):
            written_out = _is_written_out(stmt, plain)
            if written_out:
                plain, copied = plain * stmt.extent.value, copied * stmt.extent.value  # type: ignore[attr-defined]
            elif flat and stmt.kind in (SERIAL, PARALLEL):                  # a thread's part of a parallel one too
                copied = COPIES * (CHECKS + copied) + _elements_apart(stmt)
            flat = flat and written_out
        elif isinstance(stmt, While) or isinstance(stmt, Store) and dt.lanes_of(stmt.value.dtype) > 1:
            flat = False
        return _Sizes(own + plain, own + copied, flat)

    def _size(self, node: Node) -> int:
        match node:
            case Binary(op=op, a=a, b=b) if op in DIVISIONS and not isinstance(b, (IntImm, Broadcast)):
                return DIVISION * dt.lanes_of(a.dtype)
            case Cast(value=value, dtype=dtype) if _is_small_float(value.dtype) or _is_small_float(dtype):
                return CONVERSION * max(_registers(value.dtype), _registers(dtype))
            case Call(op="if_then_else", dtype=dtype) if dt.lanes_of(dtype) == 1 and any(
                    isinstance(n, Load) for a in node.args for n in walk(a)):  # type: ignore[attr-defined]
                return BRANCH
            case Call(op=op, dtype=dtype) if INTRINSICS[op].kind == "math" and not INTRINSICS[op].llvm:
                return FUNCTION * _registers(dtype)
            case Load(dtype=dtype):
                widened = _registers(dt.with_lanes("float32", dt.lanes_of(dtype)))
                return self._access(node, dtype) + CONVERSION * widened * (
                    dt.is_float(dtype) and dt.bits_of(dtype) == 8)
            case Binary() | Not() | Cast() | Select() | Shuffle() | Call():
                return _registers(node.dtype)
        return 0

    def _access(self, access: Load | Store, dtype: str) -> int:
        """Instructions that read or write elements of dtype: some for each where they do not lie side by side, more
        where each is chosen by a branch, since the CPU leaves out no lanes of such elements."""
        lanes = dt.lanes_of(dtype)
        if access.predicate is not None and dt.bits_of(dtype) < self._masked_bits:
            return BRANCH * lanes
        scattered = any(dt.lanes_of(i.dtype) > 1 and not _is_contiguous(i) for i in access.indices)
        return ELEMENT * lanes if scattered else _registers(dtype)

    @functools.cached_property
    def _masked_bits(self) -> int:
        """Of the smallest elements of which the CPU leaves out lanes; more than any has where it has no such access."""
        have = self.features()
        if have & {"sse2", "neon"} and not have & {"avx512bw", "sve"}:
            return 32 if "avx" in have else 128
        return 8


def _elements_apart(loop: For) -> int:
    """Instructions by which vectors of iterations of a loop access elements of up to 16 bits that do not lie side by
    side."""
    nodes = [n for s in statements(loop.body) for e in expressions(s) for n in walk(e)]
    accesses = [n for n in nodes if isinstance(n, Load)] + [s for s in statements(loop.body) if isinstance(s, Store)]
    bits = [dt.bits_of(a.buffer.dtype) for a in accesses if _steps(a.indices, loop.loop_var)]
    return sum(APART * (REGISTER_BITS // max(b, 8)) for b in bits if b <= 16)


def _steps(indices: tuple[Expr, ...], var: Var) -> bool:
    """True when the next value of var is not the next element, or the same."""
    for n, index in enumerate(indices):
        terms, _ = linear(index)
        scale = terms.pop(var, 0)
        if any(x is var for atom in terms for x in walk(atom)) or abs(scale) > (n == len(indices) - 1):
            return True
    return False


def _is_written_out(loop: For, size: int) -> bool:
    """True for a loop, whose body has the size, that LLVM writes out iteration by iteration."""
    return loop.kind == SERIAL and isinstance(loop.extent, IntImm) and loop.extent.value * size <= WRITTEN_OUT


def _is_contiguous(index: Expr) -> bool:
    return isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1


def _is_small_float(dtype: str) -> bool:
    return dt.is_float(dtype) and dt.bits_of(dtype) <= 16


def _registers(dtype: str) -> int:
    return 1 if dtype in ("handle", "void") else -(-dt.bits_of(dtype) * dt.lanes_of(dtype) // REGISTER_BITS)
