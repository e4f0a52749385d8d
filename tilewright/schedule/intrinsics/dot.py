"""Dot products of a few neighbouring elements: one instruction adds four products (int8) or two (bfloat16) to a lane.

C[i] += sum over k of A[k] * B[i, k], for a vector of C in registers, one group of A that all lanes share, and groups
of B that lie one after the other. Or, of two lines of memory, C[i] += sum over k of A[4 * i + k] * B[4 * i + k]: the
lanes of C add up parts of one dot product. All are exact, as wrapping int32 arithmetic is; those of bfloat16 round.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.schedule.intrinsics.form import described, description, implementation, operand
from tilewright.support.target import Target
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Broadcast, Call, Expr, IntImm, Ramp
from tilewright.tir.llvm_intrinsics import call_llvm_pure_intrin
from tilewright.tir.stmt import PrimFunc, Store
from tilewright.tir.tensor_intrin import TensorIntrin


@dataclass(frozen=True)
class DotIntrin:
    """C[lanes] += A[group] . B[lanes, group]; `needs`: sets of CPU features of which the target has one.

    of_lines: the name of the same with a group of A for each lane.
    exact: the result is that of the loop it replaces, to the last bit. shifts: the instruction takes A + 128, so 128 B
    is subtracted again, at the price of a second instruction; a rule had better shift A once and for all.
    """
    name: str
    a_type: str
    b_type: str
    c_type: str
    lanes: int
    group: int
    needs: tuple[frozenset[str], ...]
    exact: bool = True
    shifts: bool = False

    @property
    def of_lines(self) -> str:
        return f"{self.name}_lines"

    def runs_on(self, target: Target) -> bool:
        return any(group <= target.feature_set for group in self.needs)


Combine = Callable[[Expr, Expr, Expr], Expr]       # (C, A in all lanes, B) as vectors: the new C


def _register(row: DotIntrin, combine: Combine) -> DotIntrin:
    TensorIntrin.register_maker(row.name, lambda: _dot(row, combine))
    TensorIntrin.register_maker(row.of_lines, lambda: _dot_of_lines(row, combine))
    return row


def _dot(row: DotIntrin, combine: Combine) -> tuple[PrimFunc, PrimFunc]:
    shapes = (("C", (row.lanes,), row.c_type), ("A", (row.group,), row.a_type),
              ("B", (row.lanes, row.group), row.b_type))
    c, a, b = (described(*s) for s in shapes)
    desc = description(row.name, (a, b, c), (row.lanes, row.group), (False, True),
                       lambda i, k: Store(c, c[i] + cast(row.c_type, a[k]) * cast(row.c_type, b[i, k]), (i,)))
    z, x, y = (operand(*s) for s in shapes)
    groups = y.vload([0, 0], dt.with_lanes(row.b_type, row.lanes * row.group))
    return desc, implementation(row.name, (x, y, z), z, True,
                                _combined(row, combine, z, _group_in_all_lanes(row, x), groups))


def _dot_of_lines(row: DotIntrin, combine: Combine) -> tuple[PrimFunc, PrimFunc]:
    terms = row.lanes * row.group
    shapes = ("C", (row.lanes,), row.c_type), ("A", (terms,), row.a_type), ("B", (terms,), row.b_type)
    c, a, b = (described(*s) for s in shapes)

    def add(i: Expr, k: Expr) -> Store:
        at = binary("add", binary("mul", i, row.group), k)
        return Store(c, c[i] + cast(row.c_type, a[at]) * cast(row.c_type, b[at]), (i,))
    desc = description(row.of_lines, (a, b, c), (row.lanes, row.group), (False, True), add)
    z, x, y = (operand(*s) for s in shapes)
    line = y.vload(0, dt.with_lanes(row.b_type, terms))
    return desc, implementation(row.of_lines, (x, y, z), z, True, _combined(row, combine, z, _line(row, x), line))


def _combined(row: DotIntrin, combine: Combine, c: Buffer, a: Expr, b: Expr) -> Store:
    """c[0:lanes] = combine(c[0:lanes], a, b)."""
    old = c.vload(0, dt.with_lanes(row.c_type, row.lanes))
    return Store(c, combine(old, a, b), (Ramp(IntImm(0), IntImm(1), row.lanes),))


def _group_in_all_lanes(row: DotIntrin, a: Buffer) -> Expr:
    """a[0:group], shifted where the row says so, once for each lane."""
    group = a.vload(0, dt.with_lanes(row.a_type, row.group))
    word: Expr = Call("reinterpret", (group,), f"int{dt.bits_of(row.a_type) * row.group}")
    if row.shifts:
        word = binary("bitxor", word, const(_TOP_BITS, "int32"))
    passed = "uint8" if row.shifts else row.a_type
    return Call("reinterpret", (Broadcast(word, row.lanes),), dt.with_lanes(passed, row.lanes * row.group))


def _line(row: DotIntrin, a: Buffer) -> Expr:
    """a[0:lanes * group], shifted where the row says so."""
    line = a.vload(0, dt.with_lanes(row.a_type, row.lanes * row.group))
    if not row.shifts:
        return line
    unsigned = dt.with_lanes("uint8", row.lanes * row.group)
    return binary("bitxor", Call("reinterpret", (line,), unsigned), const(128, unsigned))


def _instruction(name: str) -> Combine:
    return lambda c, a, b: call_llvm_pure_intrin(c.dtype, name, c, a, b)


def _swapped(name: str) -> Combine:
    """s8 x u8 by an instruction for u8 x s8."""
    return lambda c, a, b: call_llvm_pure_intrin(c.dtype, name, c, b, a)


def _signed(name: str) -> Combine:
    """s8 x s8 by an instruction for u8 x s8: (a + 128) . b - 128 . b, both exact modulo 2**32; a comes shifted."""
    def combine(c: Expr, a: Expr, b: Expr) -> Expr:
        excess = call_llvm_pure_intrin(c.dtype, name, const(0, c.dtype), const(128, a.dtype), b)
        return call_llvm_pure_intrin(c.dtype, name, c, a, b) - excess
    return combine


def _by_pairs(name: str) -> Combine:
    """Products of pairs after widening to int16: pmaddubsw would saturate where both are large."""
    def combine(c: Expr, a: Expr, b: Expr) -> Expr:
        wide = dt.with_lanes("int16", dt.lanes_of(a.dtype))
        return c + call_llvm_pure_intrin(c.dtype, name, cast(wide, a), cast(wide, b))
    return combine


_TOP_BITS = -0x7F7F7F80             # of four bytes: 0x80808080 as int32


def _features(*alternatives: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(a.split()) for a in alternatives)


_I8 = ("int8", "int8", "int32")
_U8 = ("uint8", "int8", "int32")
_SU, _UU = ("int8", "uint8", "int32"), ("uint8", "uint8", "int32")
_BF = ("bfloat16", "bfloat16", "float32")
_VNNI512, _BF512 = _features("avx512vnni"), _features("avx512bf16")
_VNNI256 = _features("avxvnni", "avx512vnni avx512vl")
_VPDPBUSD, _DPBF16 = "llvm.x86.avx512.vpdpbusd", "llvm.x86.avx512bf16.dpbf16ps"

# Best first: of the rows for the same types a rule takes the first that the target runs.
DOTS: tuple[DotIntrin, ...] = (
    _register(DotIntrin("dot_16x4_vnni", *_U8, 16, 4, _VNNI512), _instruction(f"{_VPDPBUSD}.512")),
    _register(DotIntrin("dot_16x4_i8i8_vnni", *_I8, 16, 4, _VNNI512, shifts=True), _signed(f"{_VPDPBUSD}.512")),
    _register(DotIntrin("dot_8x4_avxvnni", *_U8, 8, 4, _VNNI256), _instruction(f"{_VPDPBUSD}.256")),
    _register(DotIntrin("dot_8x4_i8i8_avxvnni", *_I8, 8, 4, _VNNI256, shifts=True), _signed(f"{_VPDPBUSD}.256")),
    _register(DotIntrin("dot_16x4_i8u8_vnni", *_SU, 16, 4, _VNNI512), _swapped(f"{_VPDPBUSD}.512")),
    _register(DotIntrin("dot_8x4_i8u8_avxvnni", *_SU, 8, 4, _VNNI256), _swapped(f"{_VPDPBUSD}.256")),
    *(_register(DotIntrin(f"dot_8x2_{name}_avx2", *types, 8, 2, _features("avx2")),
                _by_pairs("llvm.x86.avx2.pmadd.wd"))
      for name, types in (("u8i8", _U8), ("i8i8", _I8), ("i8u8", _SU), ("u8u8", _UU))),
    _register(DotIntrin("dot_16x2_bf16", *_BF, 16, 2, _BF512, exact=False), _instruction(f"{_DPBF16}.512")),
    _register(DotIntrin("dot_8x2_bf16", *_BF, 8, 2, _features("avx512bf16 avx512vl"), exact=False),
              _instruction(f"{_DPBF16}.256")),
    _register(DotIntrin("dot_4x4_i8i8s32_sdot", *_I8, 4, 4, _features("dotprod")),
              _instruction("llvm.aarch64.neon.sdot.v4i32.v16i8")),
    _register(DotIntrin("dot_4x4_u8u8u32_udot", "uint8", "uint8", "uint32", 4, 4, _features("dotprod")),
              _instruction("llvm.aarch64.neon.udot.v4i32.v16i8")),
    _register(DotIntrin("dot_4x4_u8i8s32_usdot", *_U8, 4, 4, _features("i8mm")),
              _instruction("llvm.aarch64.neon.usdot.v4i32.v16i8")),
    _register(DotIntrin("dot_4x4_i8u8s32_usdot", *_SU, 4, 4, _features("i8mm")),
              _swapped("llvm.aarch64.neon.usdot.v4i32.v16i8")),
)


def dot_intrinsics(a_type: str, b_type: str, c_type: str, target: Target) -> list[DotIntrin]:
    """The rows of DOTS for these element types that the target runs, best first."""
    return [r for r in DOTS if (r.a_type, r.b_type, r.c_type) == (a_type, b_type, c_type) and r.runs_on(target)]
