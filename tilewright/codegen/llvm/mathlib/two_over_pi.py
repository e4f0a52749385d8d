"""Reduction of huge arguments modulo pi / 2: an exact product with the bits of 2 / pi that matter."""
from __future__ import annotations

from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.llvm.mathlib.build import MathBuilder
from tilewright.codegen.llvm.types import lanes_of_type, suffix, with_element

# A zero word, then 2 / pi in 64-bit words, high first
WORDS = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
)
HALF_PI = (1.57079632679489655800e+00, 6.12323399573676603587e-17)


def reduce_huge(module: ModuleBuilder, f: str) -> str:
    """`@tw.reduce.<type>`: (x, mask, n, r, tail) with the lanes of mask replaced by the exact
    reduction of x.
    """
    symbol = f"tw.reduce.{suffix(f)}"
    return module.helper(symbol, lambda: _lanes(module, symbol, f))


def _lanes(module: ModuleBuilder, symbol: str, f: str) -> str:
    """Loops over the lanes in memory: the code stays small, and this is the rare case."""
    lane = module.helper("tw.payne_hanek", lambda: _payne_hanek(module))
    i, m, lanes = with_element(f, "i64"), with_element(f, "i1"), lanes_of_type(f)
    result, one = f"{{ {i}, {f}, {f} }}", "{ i64, double, double }"
    array_f, array_i = f"[{lanes} x double]", f"[{lanes} x i64]"
    wide = with_element(f, "i64")
    return f"""define internal {result} @{symbol}({f} %x, {m} %mask, {i} %n, {f} %r, {f} %tail) #3 {{
entry:
  %px = alloca {array_f}, align 64
  %pm = alloca {array_i}, align 64
  %pn = alloca {array_i}, align 64
  %pr = alloca {array_f}, align 64
  %pt = alloca {array_f}, align 64
  %flags = zext {m} %mask to {wide}
  store {f} %x, ptr %px, align 8
  store {wide} %flags, ptr %pm, align 8
  store {i} %n, ptr %pn, align 8
  store {f} %r, ptr %pr, align 8
  store {f} %tail, ptr %pt, align 8
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %latch ]
  %am = getelementptr inbounds i64, ptr %pm, i64 %k
  %flag = load i64, ptr %am, align 8
  %on = icmp ne i64 %flag, 0
  br i1 %on, label %reduce, label %latch
reduce:
  %ax = getelementptr inbounds double, ptr %px, i64 %k
  %an = getelementptr inbounds i64, ptr %pn, i64 %k
  %ar = getelementptr inbounds double, ptr %pr, i64 %k
  %at = getelementptr inbounds double, ptr %pt, i64 %k
  %v = load double, ptr %ax, align 8
  %all = call {one} {lane}(double %v)
  %vn = extractvalue {one} %all, 0
  %vr = extractvalue {one} %all, 1
  %vt = extractvalue {one} %all, 2
  store i64 %vn, ptr %an, align 8
  store double %vr, ptr %ar, align 8
  store double %vt, ptr %at, align 8
  br label %latch
latch:
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, {lanes}
  br i1 %more, label %loop, label %done
done:
  %on_ = load {i}, ptr %pn, align 8
  %or_ = load {f}, ptr %pr, align 8
  %ot_ = load {f}, ptr %pt, align 8
  %o1 = insertvalue {result} poison, {i} %on_, 0
  %o2 = insertvalue {result} %o1, {f} %or_, 1
  %o3 = insertvalue {result} %o2, {f} %ot_, 2
  ret {result} %o3
}}"""


def _payne_hanek(module: ModuleBuilder) -> str:
    """double x, |x| >= 2**20 -> (n mod 4 of the nearest multiple of pi / 2, r, tail).

    With x = m * 2**(e - 52), m of 53 bits, the 192 bits of 2 / pi from bit e - 53 on decide: what lies before
    contributes multiples of 4, what lies behind less than 2**-126. 128 bits of the product are kept: 2
    of n, 126 of
    the fraction, of which cancellation eats at most 62.
    """
    table = module.global_data("tw.two_over_pi", f"private unnamed_addr constant [{len(WORDS)} x i64] ["
                               + ", ".join(f"i64 {w - (1 << 64) if w >> 63 else w}" for w in WORDS) + "]")
    b = MathBuilder(module, "double")
    raw = b.bits("%x")
    exponent = b.iand(b.ushr(raw, 52), "2047")
    mantissa = b.ior(b.iand(raw, str((1 << 52) - 1)), str(1 << 52))
    position = b.isub(exponent, str(1023 + 54 - 64))
    word, shift = b.ushr(position, 6), b.iand(position, "63")
    loaded = []
    for k in range(4):
        at = b.value(f"getelementptr inbounds i64, ptr {table}, i64 {b.iadd(word, str(k))}")
        loaded.append(b.value(f"load i64, ptr {at}, align 8"))
    funnel = module.declare("llvm.fshl.i64", "i64", "i64, i64, i64")
    window = [
        b.value(f"call i64 {funnel}(i64 {loaded[k]}, i64 {loaded[k + 1]}, i64 {shift})") for k in range(3)
    ]
    m = b.value(f"zext i64 {mantissa} to i128")
    wide = [b.value(f"zext i64 {w} to i128") for w in window]
    top = b.value(f"shl i128 {b.value(f'mul i128 {m}, {wide[0]}')}, 64")
    low = b.value(f"lshr i128 {b.value(f'mul i128 {m}, {wide[2]}')}, 64")
    total = b.value(f"add i128 {b.value(f'add i128 {top}, {low}')}, {b.value(f'mul i128 {m}, {wide[1]}')}")
    quadrant = b.value(f"lshr i128 {b.value(f'add i128 {total}, {1 << 125}')}, 126")
    rest = b.value(f"sub i128 {total}, {b.value(f'shl i128 {quadrant}, 126')}")
    n = b.value(f"trunc i128 {quadrant} to i64")
    high, tail = _times_half_pi(b, rest)
    negative = b.icmp("slt", raw, "0")
    n = b.iselect(negative, b.isub("0", n), n)
    high, tail = (b.select(negative, b.neg(v), v) for v in (high, tail))
    result = "{ i64, double, double }"
    out = b.value(f"insertvalue {result} poison, i64 {n}, 0")
    out = b.value(f"insertvalue {result} {out}, double {high}, 1")
    out = b.value(f"insertvalue {result} {out}, double {tail}, 2")
    return f"define internal {result} @tw.payne_hanek(double %x) #3 {{\n{b.body()}\n  ret {result} {out}\n}}"


def _times_half_pi(b: MathBuilder, fraction: str) -> tuple[str, str]:
    """pi / 2 * fraction / 2**126 of a signed i128, as high + tail."""
    below = b.value(f"icmp slt i128 {fraction}, 0")
    flipped = b.value(f"sub i128 0, {fraction}")
    magnitude = b.value(f"select i1 {below}, i128 {flipped}, i128 {fraction}")
    count = b.module.declare("llvm.ctlz.i128", "i128", "i128, i1")
    zeros = b.value(f"call i128 {count}(i128 {magnitude}, i1 true)")
    aligned = b.value(f"shl i128 {magnitude}, {zeros}")
    first = b.value(f"trunc i128 {b.value(f'lshr i128 {aligned}, 75')} to i64")  # 53 bits
    second = b.value(f"trunc i128 {b.value(f'lshr i128 {aligned}, 11')} to i64")  # the 64 bits behind them
    exponent = b.isub("-51", b.value(f"trunc i128 {zeros} to i64"))
    scale = b.power_of_two(exponent)
    v = b.mul(b.value(f"uitofp i64 {first} to double"), scale)
    v_low = b.mul(b.mul(b.value(f"uitofp i64 {second} to double"), b.c(2.0**-64)), scale)
    r = b.mul(v, b.c(HALF_PI[0]))
    v_head, pi_head = b.upper(v), 1.570796012878418
    v_rest, pi_rest = b.sub(v, v_head), HALF_PI[0] - pi_head
    error = b.sub(b.mul(v_head, b.c(pi_head)), r)
    error = b.add(error, b.mul(v_head, b.c(pi_rest)))
    error = b.add(error, b.mul(v_rest, b.c(pi_head)))
    error = b.add(error, b.mul(v_rest, b.c(pi_rest)))
    low = b.add(error, b.add(b.mul(v, b.c(HALF_PI[1])), b.mul(v_low, b.c(HALF_PI[0]))))
    high = b.add(r, low)
    tail = b.add(b.sub(r, high), low)
    return (b.value(f"select i1 {below}, double {b.neg(x)}, double {x}") for x in (high, tail))  # type: ignore[return-value]
