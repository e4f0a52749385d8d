"""Calls of LLVM's intrinsics by name, and the bits of one type read as another."""
from __future__ import annotations

import functools

import llvmlite.binding as llvm

from tilewright.codegen.llvm.context import CALLS, FunctionEmitter, emits
from tilewright.codegen.llvm.small_floats import from_memory, to_memory
from tilewright.codegen.llvm.types import memory_type, register_type, with_element
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Call, Expr, StringImm
from tilewright.tir.llvm_intrinsics import LLVM_CALLS, find
from tilewright.tir.verify.types import reinterpret_mismatch

_ELEMENT = {"float16": "half", "bfloat16": "bfloat"}


def _passed_type(dtype: str) -> str:
    """The type in which an intrinsic takes a value: LLVM's own for the floats of 16 bits, bits for those of 8."""
    element = dt.element_of(dtype)
    if element in _ELEMENT:
        return with_element(register_type(dtype), _ELEMENT[element])
    return register_type(dtype) if element == "bool" else memory_type(dtype)


@emits(CALLS, *LLVM_CALLS)
def emit_llvm_intrinsic(fn: FunctionEmitter, e: Call) -> str:
    """The intrinsic, where the CPU has what it needs: LLVM would abort the process on one that it cannot select."""
    name, args = e.args[0], e.args[1:]
    assert isinstance(name, StringImm), "the verifier has seen the name"
    _require_features(fn, name.value)
    result, types = _passed_type(e.type), [_passed_type(a.dtype) for a in args]
    symbol = fn.module.declare(_declared_name(name.value, result, ", ".join(types)), result, ", ".join(types))
    operands = ", ".join(f"{t} {_passed(fn, a, t)}" for t, a in zip(types, args, strict=True))
    call = f"call {result} {symbol}({operands})"
    value = fn.value(call) if e.op == "call_llvm_pure_intrin" else fn.effect(call)
    stored = memory_type(e.type)
    if dt.is_bool(e.type) or result == stored:
        return value
    return from_memory(fn, fn.value(f"bitcast {result} {value} to {stored}"), e.type)


def _passed(fn: FunctionEmitter, e: Expr, type_: str) -> str:
    if dt.is_bool(e.dtype):
        return fn.expr(e)
    stored, from_ = bits(fn, e), memory_type(e.dtype)
    return stored if from_ == type_ else fn.value(f"bitcast {from_} {stored} to {type_}")


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


def bits(fn: FunctionEmitter, e: Expr) -> str:
    """The memory form of e; that of a reinterpretation is the one of its operand."""
    if isinstance(e, Call) and e.op == "reinterpret" and not dt.is_bool(e.type):
        return _regrouped(fn, e)
    return to_memory(fn, fn.expr(e), e.dtype)


def _regrouped(fn: FunctionEmitter, e: Call) -> str:
    source, target = e.args[0].dtype, e.type
    wrong = reinterpret_mismatch(source, target)
    if wrong:
        raise CodegenError(f"{fn.name}: reinterpret: {wrong}")
    stored, from_, to = bits(fn, e.args[0]), memory_type(source), memory_type(target)
    return stored if from_ == to else fn.value(f"bitcast {from_} {stored} to {to}")


@emits(CALLS, "reinterpret")
def emit_reinterpret(fn: FunctionEmitter, e: Call) -> str:
    """The bits of the operand as a type of the same size, also of another number of lanes."""
    return from_memory(fn, _regrouped(fn, e), e.type)
