"""fmod, exact for all arguments: long division of the mantissas in binary, one lane at a time."""
from __future__ import annotations

from string import Template

from tilewright.codegen.llvm.builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm.context import CALLS, FunctionEmitter, emits
from tilewright.codegen.llvm.small_floats import round_small
from tilewright.codegen.llvm.types import lanes_of_type, register_type, suffix
from tilewright.tir.expr import Call


@emits(CALLS, "fmod")
def emit_fmod(fn: FunctionEmitter, e: Call) -> str:
    """x - n * y with n = x / y rounded to zero; the sign of x. NaN for x infinite or y zero."""
    x, y = map(fn.expr, e.args)
    return round_small(fn, remainder(fn, x, y, register_type(e.dtype)), e.dtype)


def remainder(fn: FunctionEmitter, x: str, y: str, type_: str) -> str:
    """fmod of two operands of an LLVM type, lane by lane."""
    return fn.value(f"call {type_} {fmod_helper(fn.module, type_)}({type_} {x}, {type_} {y})")


def fmod_helper(module: ModuleBuilder, type_: str) -> str:
    """`@tw.fmod.<type>`, defined in the module at the first request."""
    symbol = f"tw.fmod.{suffix(type_)}"
    return module.helper(symbol, lambda: _lanes(module, symbol, type_))


def _lanes(module: ModuleBuilder, symbol: str, f: str) -> str:
    b, lanes = FunctionBuilder(module), lanes_of_type(f)
    scalar = "double" if "double" in f else "float"
    one = f"tw.fmod.lane.{suffix(scalar)}"
    lane_symbol = module.helper(one, lambda: _scalar(module, scalar))
    out = "poison"
    if lanes == 1:
        out = b.value(f"call {scalar} {lane_symbol}({scalar} %x, {scalar} %y)")
    for lane in range(lanes) if lanes > 1 else ():
        a = b.value(f"extractelement {f} %x, i64 {lane}")
        c = b.value(f"extractelement {f} %y, i64 {lane}")
        r = b.value(f"call {scalar} {lane_symbol}({scalar} {a}, {scalar} {c})")
        out = b.value(f"insertelement {f} {out}, {scalar} {r}, i64 {lane}")
    return f"define internal {f} @{symbol}({f} %x, {f} %y) #2 {{\n{b.body()}\n  ret {f} {out}\n}}"


# As musl's fmod.c: mantissas aligned at the exponent of y, then one subtraction per bit of the quotient. i: the integer
# type of the bits; one: the bit above the mantissa, mask: those of the mantissa; lead: bits above both.
_SCALAR = Template("""define internal $f @$symbol($f %x, $f %y) #1 {
entry:
  %ax = call $f $fabs($f %x)
  %ay = call $f $fabs($f %y)
  %finite = fcmp olt $f %ax, 0x7FF0000000000000
  %nonzero = fcmp ogt $f %ay, 0.0
  %valid = and i1 %finite, %nonzero
  br i1 %valid, label %compare, label %nan
nan:
  %zero = fmul $f %x, %y
  %nanvalue = fdiv $f %zero, %zero
  %sum = fadd $f %x, %y
  %unordered = fcmp uno $f %x, %y
  %notanumber = select i1 %unordered, $f %sum, $f 0x7FF8000000000000
  ret $f %notanumber
compare:
  %less = fcmp olt $f %ax, %ay
  br i1 %less, label %same, label %prepare
same:
  ret $f %x
prepare:
  %ix = bitcast $f %ax to $i
  %iy = bitcast $f %ay to $i
  %ex0 = lshr $i %ix, $bits
  %ey0 = lshr $i %iy, $bits
  %fx = and $i %ix, $mask
  %fy = and $i %iy, $mask
  %dx = icmp eq $i %ex0, 0
  %dy = icmp eq $i %ey0, 0
  %lx = call $i $ctlz($i %fx, i1 false)
  %ly = call $i $ctlz($i %fy, i1 false)
  %sx = sub $i %lx, $lead
  %sy = sub $i %ly, $lead
  %sxs = select i1 %dx, $i %sx, $i 0
  %sys = select i1 %dy, $i %sy, $i 0
  %nx = shl $i %fx, %sxs
  %ny = shl $i %fy, %sys
  %ox = or $i %fx, $one
  %oy = or $i %fy, $one
  %mx0 = select i1 %dx, $i %nx, $i %ox
  %my = select i1 %dy, $i %ny, $i %oy
  %exd = sub $i 1, %sxs
  %eyd = sub $i 1, %sys
  %ex = select i1 %dx, $i %exd, $i %ex0
  %ey = select i1 %dy, $i %eyd, $i %ey0
  br label %divide
divide:
  %e = phi $i [ %ex, %prepare ], [ %enext, %step ]
  %m = phi $i [ %mx0, %prepare ], [ %mnext, %step ]
  %reduced = sub $i %m, %my
  %below = icmp slt $i %reduced, 0
  %rest = select i1 %below, $i %m, $i %reduced
  %more = icmp sgt $i %e, %ey
  br i1 %more, label %step, label %finish
step:
  %mnext = shl $i %rest, 1
  %enext = sub $i %e, 1
  br label %divide
finish:
  %iszero = icmp eq $i %rest, 0
  br i1 %iszero, label %exact, label %normalize
exact:
  %empty = call $f $copysign($f 0.0, $f %x)
  ret $f %empty
normalize:
  %lead = call $i $ctlz($i %rest, i1 false)
  %up = sub $i %lead, $lead
  %mm = shl $i %rest, %up
  %ee = sub $i %e, %up
  %normal = icmp sgt $i %ee, 0
  %nofirst = sub $i %mm, $one
  %eshift = shl $i %ee, $bits
  %nbits = or $i %nofirst, %eshift
  %down0 = sub $i 1, %ee
  %down = select i1 %normal, $i 0, $i %down0
  %dbits = lshr $i %mm, %down
  %rbits = select i1 %normal, $i %nbits, $i %dbits
  %magnitude = bitcast $i %rbits to $f
  %signed = call $f $copysign($f %magnitude, $f %x)
  ret $f %signed
}""")


def _scalar(module: ModuleBuilder, f: str) -> str:
    """fmod of two numbers."""
    i, bits, lead = ("i64", 52, 11) if f == "double" else ("i32", 23, 8)
    return _SCALAR.substitute(
        f=f, i=i, bits=bits, lead=lead, one=1 << bits, mask=(1 << bits) - 1, symbol=f"tw.fmod.lane.{suffix(f)}",
        fabs=module.intrinsic("fabs", f, (f,), (f,)), copysign=module.intrinsic("copysign", f, (f, f), (f,)),
        ctlz=module.declare(f"llvm.ctlz.{i}", i, f"{i}, i1"))
