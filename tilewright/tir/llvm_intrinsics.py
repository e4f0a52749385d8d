"""LLVM's intrinsics in the IR: calls by name, and what those compute that tensor intrinsics use.

The meanings follow Intel's and Arm's descriptions of the instructions and the LLVM Language Reference.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.support.errors import InterpreterError, IRError, described
from tilewright.tir import dtype as dt
from tilewright.tir.conversion import convert
from tilewright.tir.expr import Call, Expr, IntImm, StringImm

__all__ = ["call_llvm_intrin", "call_llvm_pure_intrin", "llvm_lookup_intrinsic_id", "register_llvm_intrinsic"]
LLVM_CALLS = ("call_llvm_pure_intrin", "call_llvm_intrin")


Meaning = Callable[[np.dtype, Sequence[np.ndarray]], np.ndarray]


@dataclass(frozen=True)
class LlvmIntrinsic:
    """needs: sets of CPU features of which one must be there. evaluate(result dtype, arrays of lanes) gives lanes."""
    needs: tuple[frozenset[str], ...]
    evaluate: Meaning | None


def call_llvm_pure_intrin(dtype: str, name: str | int, *args: Any) -> Expr:
    """The LLVM intrinsic `name` of args, which has no effects; the result is a `dtype`, such as "int32x16".

    name: "llvm.x86.avx512.vpdpbusd.512", or an id from llvm_lookup_intrinsic_id; the types in an overloaded name may
    be left out. A uint32 constant before the arguments is the count of signature arguments that TVM before 0.19 asks
    for, and is dropped. Raises IRError for a name that does not start with "llvm.".
    """
    return _call("call_llvm_pure_intrin", dtype, name, args)


def call_llvm_intrin(dtype: str, name: str | int, *args: Any) -> Expr:
    """The LLVM intrinsic `name` of args, kept and kept in order because it may have effects."""
    return _call("call_llvm_intrin", dtype, name, args)


_ids: list[str] = []


def llvm_lookup_intrinsic_id(name: str) -> int:
    """A number that stands for the name in this process (TVM's programs pass it on to call_llvm_intrin)."""
    if name not in _ids:
        _ids.append(name)
    return _ids.index(name) + 1


def register_llvm_intrinsic(name: str, needs: Sequence[str] = (), evaluate: Meaning | None = None) -> None:
    """Make an intrinsic known: code generation refuses others, since LLVM aborts on what a CPU lacks.

    name: without the types of an overload. needs: the CPU features, in LLVM's spelling, that it takes (none: any CPU
    has it). evaluate(dtype, arrays): what it computes, for the interpreter; a lane of the result has the NumPy dtype,
    arrays are the arguments, lane by lane.
    """
    TABLE[name] = LlvmIntrinsic((frozenset(needs),) if needs else (), evaluate)


def _call(op: str, dtype: str, name: str | int, args: Sequence[Any]) -> Expr:
    if isinstance(name, IntImm):
        name = name.value
    if isinstance(name, int) and 0 < name <= len(_ids):
        name = _ids[name - 1]
    name = name.value if isinstance(name, StringImm) else name
    if not isinstance(name, str) or not re.fullmatch(r"llvm\.[A-Za-z0-9_.]+", name):
        raise IRError(f"{op}: {described(name)} is no LLVM intrinsic", 'e.g. "llvm.ctpop", or its id')
    exprs = [convert(a) for a in args]
    if exprs and isinstance(exprs[0], IntImm) and exprs[0].dtype == "uint32":
        exprs = exprs[1:]
    return Call(op, (StringImm(name), *exprs), dt.canonical(dtype))


def find(name: str) -> LlvmIntrinsic | None:
    """What is known of an intrinsic, by its name with or without the types of an overload."""
    row = TABLE.get(name)
    while row is None and re.search(r"\.(v\d+)?(i|f|bf)\d+$", name):
        name = name.rpartition(".")[0]
        row = TABLE.get(name)
    return row


def evaluate(name: str, dtype: str, dtypes: Sequence[str], args: Sequence[Any]) -> Any:
    """The value of a call in the interpreter: a list of lanes, or a scalar. Raises InterpreterError."""
    row = find(name)
    if row is None or row.evaluate is None:
        raise InterpreterError(f"the interpreter does not know what {name} computes",
                               f"it knows {', '.join(sorted(TABLE))}")
    arrays = [np.atleast_1d(np.array(a if dt.lanes_of(t) == 1 else list(a), dt.numpy_dtype(t)))
              for a, t in zip(args, dtypes, strict=True)]
    element, lanes = dt.parse(dtype)
    out = np.ascontiguousarray(row.evaluate(dt.numpy_dtype(element), arrays))
    if out.shape != (lanes,) or out.dtype != dt.numpy_dtype(element):
        raise InterpreterError(f"{name} of {', '.join(dtypes)} gives {len(out)} lane(s) of {out.dtype}, not {dtype}")
    values = list(out) if dt.is_float(element) else out.tolist()
    return values if lanes > 1 else values[0]


@dataclass(frozen=True)
class Dot:
    """(acc, a, b) or (a, b): acc plus the sums of `group` neighbouring products of a and b, read as elements of types.

    ends: the type to which a sum saturates; it wraps without one.
    """
    a: str
    b: str
    group: int
    ends: str = ""

    def __call__(self, kind: np.dtype, args: Sequence[np.ndarray]) -> np.ndarray:
        *acc, a, b = args
        products = a.view(self.a).astype("int64") * b.view(self.b).astype("int64")
        sums = products.reshape(-1, self.group).sum(1) + sum(v.astype("int64") for v in acc)
        return (np.clip(sums, *dt.integer_range(self.ends)) if self.ends else sums).astype(kind)


def _dot_bfloat16(kind: np.dtype, args: Sequence[np.ndarray]) -> np.ndarray:
    """acc + b1 * c1, then + b0 * c0, each rounded once to float32; subnormal numbers count as zero."""
    acc, a, b = args
    x, y = (_flushed(v.view(ml_dtypes.bfloat16).astype("float32")).astype("float64").reshape(-1, 2) for v in (a, b))
    with np.errstate(all="ignore"):
        first = _flushed((_flushed(acc).astype("float64") + x[:, 1] * y[:, 1]).astype("float32"))
        return _flushed((first.astype("float64") + x[:, 0] * y[:, 0]).astype("float32")).astype(kind)


def _flushed(x: np.ndarray) -> np.ndarray:
    """x with subnormal numbers replaced by zeros of their sign."""
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)


def _interleave(kind: np.dtype, args: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack(args, 1).ravel()


def _each_lane(function: Callable[..., Any]) -> Meaning:
    return lambda kind, args: np.asarray(function(*args)).astype(kind)


def _popcount(x: np.ndarray) -> np.ndarray:
    return np.array([int(v).bit_count() for v in x.view(f"uint{8 * x.itemsize}")])


def _features(*alternatives: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(a.split()) for a in alternatives)


_VNNI = {f"llvm.x86.avx512.{op}.{bits}": LlvmIntrinsic(
             _features("avx512vnni") if bits == 512 else _features("avxvnni", "avx512vnni avx512vl"), meaning)
         for bits in (128, 256, 512)
         for op, meaning in (("vpdpbusd", Dot("uint8", "int8", 4)),
                             ("vpdpbusds", Dot("uint8", "int8", 4, "int32")),
                             ("vpdpwssd", Dot("int16", "int16", 2)),
                             ("vpdpwssds", Dot("int16", "int16", 2, "int32")))}
_BF16 = {f"llvm.x86.avx512bf16.dpbf16ps.{bits}": LlvmIntrinsic(
             _features("avx512bf16" if bits == 512 else "avx512bf16 avx512vl"), _dot_bfloat16)
         for bits in (128, 256, 512)}
TABLE: dict[str, LlvmIntrinsic] = {
    **_VNNI, **_BF16,
    "llvm.x86.sse2.pmadd.wd": LlvmIntrinsic(_features("sse2"), Dot("int16", "int16", 2)),
    "llvm.x86.avx2.pmadd.wd": LlvmIntrinsic(_features("avx2"), Dot("int16", "int16", 2)),
    "llvm.x86.avx512.pmaddw.d.512": LlvmIntrinsic(_features("avx512bw"), Dot("int16", "int16", 2)),
    "llvm.x86.ssse3.pmadd.ub.sw.128": LlvmIntrinsic(_features("ssse3"), Dot("uint8", "int8", 2, "int16")),
    "llvm.x86.avx2.pmadd.ub.sw": LlvmIntrinsic(_features("avx2"), Dot("uint8", "int8", 2, "int16")),
    "llvm.x86.avx512.pmaddubs.w.512": LlvmIntrinsic(_features("avx512bw"), Dot("uint8", "int8", 2, "int16")),
    "llvm.aarch64.neon.sdot": LlvmIntrinsic(_features("dotprod"), Dot("int8", "int8", 4)),
    "llvm.aarch64.neon.udot": LlvmIntrinsic(_features("dotprod"), Dot("uint8", "uint8", 4)),
    "llvm.aarch64.neon.usdot": LlvmIntrinsic(_features("i8mm"), Dot("uint8", "int8", 4)),
    "llvm.vector.interleave2": LlvmIntrinsic((), _interleave),
    "llvm.ctpop": LlvmIntrinsic((), _each_lane(_popcount)),
    "llvm.fma": LlvmIntrinsic((), lambda kind, args: (args[0].astype("float64") * args[1] + args[2]).astype(kind)),
    "llvm.fabs": LlvmIntrinsic((), _each_lane(np.abs)),
    "llvm.sqrt": LlvmIntrinsic((), _each_lane(np.sqrt)),
    "llvm.smax": LlvmIntrinsic((), _each_lane(np.maximum)),
    "llvm.smin": LlvmIntrinsic((), _each_lane(np.minimum)),
    "llvm.bswap": LlvmIntrinsic((), lambda kind, args: args[0].byteswap().astype(kind)),
}
