"""Calls of LLVM's intrinsics by name, and the bits of one type read as another."""
from __future__ import annotations

import functools

import llvmlite.binding as llvm

from tilewright.codegen.llvm.context import CALLS, FunctionEmitter, emits
from tilewright.codegen.llvm.types import register_type, with_element
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Call, StringImm
from tilewright.tir.llvm_intrinsics import LLVM_CALLS, find
from tilewright.tir.verify.types import reinterpret_mismatch

_ELEMENT = {"float16": "half", "bfloat16": "bfloat"}


def _passed_type(dtype: str) -> str:
    """The type in which an intrinsic takes a value: LLVM's own for the floats of 16 bits, bits for those of 8."""
    element, type_ = dt.element_of(dtype), register_type(dtype)
    return with_element(type_, _ELEMENT[element]) if element in _ELEMENT else type_


@emits(CALLS, *LLVM_CALLS)
def emit_llvm_intrinsic(fn: FunctionEmitter, e: Call) -> str:
    """The intrinsic, where the CPU has what it needs: LLVM would abort the process on one that it cannot select."""
    name, args = e.args[0], e.args[1:]
    assert isinstance(name, StringImm), "the verifier has seen the name"
    _require_features(fn, name.value)
    result, types = _passed_type(e.type), [_passed_type(a.dtype) for a in args]
    symbol = fn.module.declare(_declared_name(name.value, result, ", ".join(types)), result, ", ".join(types))
    operands = ", ".join(f"{t} {_bits(fn, fn.expr(a), register_type(a.dtype), t)}" for t, a in zip(types, args))
    call = f"call {result} {symbol}({operands})"
    value = fn.value(call) if e.op == "call_llvm_pure_intrin" else fn.effect(call)
    return _bits(fn, value, result, register_type(e.type))


def _bits(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    """The bits of x as another LLVM type."""
    return x if source == target else fn.value(f"bitcast {source} {x} to {target}")


def _require_features(fn: FunctionEmitter, name: str) -> None:
    row = find(name)
    if row is None:
        raise CodegenError(with_hint(
            f"{fn.name}: {name} is no intrinsic whose CPU features are known here",
            "tir.register_llvm_intrinsic(name, needs=(...)) says which CPUs have it, and what it computes"))
    if row.needs and not any(group <= fn.module.features for group in row.needs):
        wanted = " or ".join("+".join(sorted(group)) for group in row.needs)
        raise CodegenError(with_hint(f"{fn.name}: {name} needs a CPU with {wanted}",
                                     "choose it by target.has_feature(...), or give the target -mattr"))


@functools.lru_cache(256)
def _declared_name(name: str, result: str, arguments: str) -> str:
    """The full name of the intrinsic, the types of its overload included. Raises CodegenError where there is none."""
    try:
        module = llvm.parse_assembly(f"declare {result} @{name}({arguments})\n")
        module.verify()
    except RuntimeError as error:
        raise CodegenError(f"{name} of ({arguments}) to {result}: {str(error).strip()}") from None
    found = next(iter(module.functions))
    if "attributes #0" not in str(module):               # LLVM gives those to every intrinsic that it knows
        raise CodegenError(f"LLVM has no intrinsic {name} of ({arguments}) to {result}")
    return found.name


@emits(CALLS, "reinterpret")
def emit_reinterpret(fn: FunctionEmitter, e: Call) -> str:
    """The bits of the operand as a type of the same size, also of another number of lanes."""
    source, target = e.args[0].dtype, e.type
    wrong = reinterpret_mismatch(source, target)
    if wrong:
        raise CodegenError(f"{fn.name}: reinterpret: {wrong}")
    return _bits(fn, fn.expr(e.args[0]), register_type(source), register_type(target))
