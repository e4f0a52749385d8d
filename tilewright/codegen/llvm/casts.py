"""Casts: by formulas, and by the instructions that convert."""
from __future__ import annotations

from tilewright.codegen.llvm.context import EXPRESSIONS, FunctionEmitter, emits
from tilewright.codegen.llvm.formulas import inline
from tilewright.codegen.llvm.types import register_type, with_element, with_zero
from tilewright.formulas import Formula
from tilewright.formulas.conversions import conversions
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Cast


@emits(EXPRESSIONS, Cast)
def emit_cast(fn: FunctionEmitter, e: Cast) -> str:
    """Float to integer truncates and saturates (NaN gives 0); a narrower integer wraps; to bool is != 0."""
    if dt.lanes_of(e.value.dtype) != dt.lanes_of(e.type):
        raise CodegenError(f"{fn.name}: cast from {e.value.dtype} to {e.type} changes the number of lanes")
    # LLVM would call library functions that nobody links where the CPU does not convert floats of 16 bits
    native = ("float16",) if "sse2" not in fn.module.features or "f16c" in fn.module.features else ()
    value, steps = conversions(e, native)
    x, source = fn.expr(value), value.dtype
    for step in steps:
        if not isinstance(step, Formula):
            x, source = convert(fn, x, source, step), step
        elif step.name == "truncate" and dt.lanes_of(source) == 1:      # LLVM's own falls apart into scalars on vectors
            x = _saturate(fn, x, source, e.type)
        else:
            x, source = inline(fn, step, x), step.results[0].dtype
    return x


def convert(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    """The operand x of dtype source as dtype target (equal lanes), by an instruction."""
    from_, to = register_type(source), register_type(target)
    half = with_element(from_, "half")
    if dt.element_of(source) == "float16":
        return fn.value(f"fpext {half} {fn.value(f'bitcast {from_} {x} to {half}')} to {to}")
    if dt.element_of(target) == "float16":
        return fn.value(f"bitcast {half} {fn.value(f'fptrunc {from_} {x} to {half}')} to {to}")
    if dt.is_bool(target):
        test = "fcmp une" if dt.is_float(source) else "icmp ne"
        return x if dt.is_bool(source) else fn.value(f"{test} {from_} {x}, {with_zero(from_)}")
    narrow, wide = dt.bits_of(target), dt.bits_of(source)
    if dt.is_float(source):
        opcode = "fptrunc" if narrow < wide else "fpext"
    elif dt.is_float(target):
        opcode = "sitofp" if dt.is_signed(source) else "uitofp"
    elif narrow == wide:
        return x
    else:
        opcode = "trunc" if narrow < wide else ("sext" if dt.is_signed(source) else "zext")
    return fn.value(f"{opcode} {from_} {x} to {to}")


def _saturate(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    from_, to = register_type(source), register_type(target)
    return fn.call("fptosi.sat" if dt.is_signed(target) else "fptoui.sat", to, ((from_, x),), mangled=(to, from_))
